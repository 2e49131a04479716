// Names for PTX in the kernels of families.py.

#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif
#define TO(at) "r"(unsigned(__cvta_generic_to_shared(at)))
#define COPY(how, bytes, to, from) \
    asm volatile("cp.async." how ".shared.global [%0], [%1], " #bytes ";" ::TO(to), "l"(from) : "memory")
#define COPY_PART(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::TO(to), "l"(from), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
#define SYNC(number, threads) asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory")
#define ARRIVE(number, threads) asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory")
#define FENCE(how) asm volatile("fence." how ";" ::: "memory")
#define LD(order, value, from) asm volatile("ld." order ".s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory")
#define ST(order, to, value) asm volatile("st." order ".s32 [%0], %1;" ::"l"(to), "r"(value) : "memory")
#define RED(order, to, value) asm volatile("red." order ".add.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory")
#define ATOM(order, old, to, value) \
    asm volatile("atom." order ".add.s32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(value) : "memory")
#define FLAG (out + 1000)
