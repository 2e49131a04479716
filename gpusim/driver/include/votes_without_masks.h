// Votes of the lanes that are together, for programs that were written before votes had masks. These
// are macros, behind the headers that have types by these names, for programs that do not compile without.
#pragma once
#if __has_include(<cuda/std/functional>)
#include <cuda/std/functional>
#endif
#define __any(asked) __any_sync(__activemask(), asked)
#define __all(asked) __all_sync(__activemask(), asked)
#define __ballot(asked) __ballot_sync(__activemask(), asked)
