#pragma once
// Result<T>: a value or an Error. The only two macros of the code base propagate errors.

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace thermo {

template <class T>
using Result = tl::expected<T, Error>;

/// `return fail(ErrorCode::kNotFound, "no such key 'x'");`
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message = {}) {
  return tl::unexpected<Error>(Error(code, std::move(message)));
}

}  // namespace thermo

#define THERMO_CONCAT_INNER(a, b) a##b
#define THERMO_CONCAT(a, b) THERMO_CONCAT_INNER(a, b)

/// Evaluates a Result<void>-like expression and returns its error from the enclosing function.
#define TRY(expr)                                                                                           \
  do {                                                                                                      \
    auto thermo_try_result = (expr);                                                                        \
    if (!thermo_try_result) return ::tl::unexpected<::thermo::Error>(std::move(thermo_try_result).error()); \
  } while (false)

/// `TRY_ASSIGN(auto page, store.list_page(...));` binds the value or returns the error.
#define TRY_ASSIGN(decl, expr) TRY_ASSIGN_IMPL(THERMO_CONCAT(thermo_try_, __LINE__), decl, expr)
#define TRY_ASSIGN_IMPL(tmp, decl, expr)                                      \
  auto tmp = (expr);                                                          \
  if (!tmp) return ::tl::unexpected<::thermo::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)
