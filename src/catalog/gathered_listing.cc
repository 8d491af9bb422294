// Engine::list_gathered: a folder of a store that does not list in the order of keys. Only all pages together tell what is there,
// and a page can only be asked for by the token of the one before.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/engine.h"
#include "catalog/page_order.h"

namespace thermo::catalog {
namespace {

// All names are in memory until the last page came.
constexpr std::size_t kMostNames = 250'000;
constexpr std::size_t kMostNamesAtOnce = 500'000;  // of all such listings
constexpr std::size_t kNamesPerBatch = 4096;
// Per page: who asked may have to give up long before the last one, and finds the listing still running when it asks again.
constexpr Nanos kPagePatience = std::chrono::seconds(60);

}  // namespace

class Engine::GatheredListing : public std::enable_shared_from_this<Engine::GatheredListing> {
 public:
  GatheredListing(std::shared_ptr<Engine> engine, Question question, FlightPtr flight, std::uint32_t page_limit)
      : engine_(std::move(engine)),
        question_(std::move(question)),
        flight_(std::move(flight)),
        page_limit_(page_limit),
        started_(engine_->shared_.stamps.next()),
        vouching_(engine_->applier_.vouch(flight_->subject, started_)) {}
  ~GatheredListing() { engine_->shared_.names_gathered -= counted_; }
  GatheredListing(const GatheredListing&) = delete;
  GatheredListing& operator=(const GatheredListing&) = delete;

  /// One request at a time: what it found belongs to whoever handles its answer.
  void ask(std::string token) {
    store::ListRequest request;
    request.prefix = flight_->subject;
    request.delimiter = "/";
    request.continuation = std::move(token);
    question_.ctx.deadline = engine_->shared_.clock.now() + kPagePatience;
    engine_->list(question_, std::move(request), engine_->shared_.folder_lists,
                  [self = shared_from_this()](Result<store::ListPage> page) { self->answer(std::move(page)); });
  }

 private:
  void answer(Result<store::ListPage> page) {
    if (!page) return end(fail(std::move(page).error()));
    ++pages_;
    if (page->truncated && page->objects.empty() && page->prefixes.empty()) {
      return end(fail(ErrorCode::kCorrupt, "the store sent an empty page that claims to go on"));
    }
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(all_.objects));
    std::move(page->prefixes.begin(), page->prefixes.end(), std::back_inserter(all_.prefixes));
    if (!page->truncated) return end(write_down());
    if (page->continuation == token_) return end(fail(ErrorCode::kCorrupt, "the store sent the same page again"));
    const std::size_t names = all_.objects.size() + all_.prefixes.size();
    if (names > kMostNames) {
      return end(fail(ErrorCode::kNotSupported,
                      fmt::format("more than {} names, and the store does not list them in the order of keys", kMostNames)));
    }
    const std::size_t more = names - std::exchange(counted_, names);
    if ((engine_->shared_.names_gathered += more) > kMostNamesAtOnce) {
      return end(fail(ErrorCode::kUnavailable, "too many big folders are being listed that do not come in the order of keys"));
    }
    // For the sake of one name nobody asks for all of a big folder.
    if (pages_ >= page_limit_) {
      capped_ = true;
      return end(engine_->applier_.reached(question_.ctx, flight_->subject, {0, 0, pages_ + 1}));
    }
    token_ = page->continuation;
    ask(token_);
  }

  Result<void> write_down() {
    const auto pages = pages_in_order(std::move(all_), kNamesPerBatch);
    Coverage coverage{flight_->subject, false, {}, {}, started_};
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const auto& page = pages[i];
      std::optional<Applier::Completion> completion;
      if (page.truncated) {
        coverage.until = std::max(page.objects.empty() ? std::string() : page.objects.back().key,
                                  page.prefixes.empty() ? std::string() : page.prefixes.back());
      } else {
        coverage.until.clear();
        completion = {started_, pages_};
      }
      TRY_ASSIGN(const auto applied, engine_->applier_.page(question_.ctx, coverage, page, completion));
      engine_->notify(applied.notices);
      nothing_there_ = applied.nothing_there;
      if (applied.overtaken) {
        capped_ = true;  // others know better; this listing vouches for nothing
        return {};
      }
      coverage.after = coverage.until;
    }
    return {};
  }

  void end(const Result<void>& outcome) {
    const auto named = outcome ? outcome : fail(outcome.error().within("list '" + flight_->subject + "'"));
    engine_->flights_.finish(flight_, named, {.nothing_there = nothing_there_, .partial = capped_});
  }

  const std::shared_ptr<Engine> engine_;
  Question question_;
  const FlightPtr flight_;
  const std::uint32_t page_limit_;
  const WallNanos started_;  // of its first request, which may come after those of the flight that found the disorder
  const Vouching::Token vouching_;
  store::ListPage all_;
  std::size_t counted_ = 0;  // in names_gathered
  bool capped_ = false;
  std::string token_;
  std::uint32_t pages_ = 0;
  bool nothing_there_ = false;
};

void Engine::list_gathered(const Question& question, const FlightPtr& flight, std::uint32_t page_limit) {
  std::make_shared<GatheredListing>(shared_from_this(), question, flight, page_limit)->ask({});
}

bool Engine::in_order(const Question& question, const Coverage& coverage, const store::ListPage& page) {
  const auto checked = check_order(coverage, page);
  if (checked) return true;
  if (!applier_.set_unordered()) return false;
  log::warn("catalog: {} does not list in the order of keys ({}); from now on its folders are listed one page after the other",
            question.store->id(), checked.error().message());
  expire_prefix({});
  io::KvBatch batch;
  batch.put(unordered_key(knowledge_.store()), encode(shared_.stamps.mark()));
  if (const auto written = shared_.kv.write(batch); !written) {
    log::warn("catalog: that will be found out again after a restart: {}", written.error().describe());
  }
  return false;
}

}  // namespace thermo::catalog
