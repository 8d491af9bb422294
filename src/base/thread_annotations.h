#pragma once
// clang's thread-safety attributes (checked by the clang preset; nothing under GCC).

#if defined(__clang__)
#define THERMO_ATTRIBUTE(x) __attribute__((x))
#else
#define THERMO_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) THERMO_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY THERMO_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) THERMO_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) THERMO_ATTRIBUTE(pt_guarded_by(x))
#define REQUIRES(...) THERMO_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) THERMO_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) THERMO_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) THERMO_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define EXCLUDES(...) THERMO_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS THERMO_ATTRIBUTE(no_thread_safety_analysis)
