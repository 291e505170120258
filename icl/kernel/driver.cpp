// The instruction set is chosen when the program runs, and the blocks of prompts are handed to threads. Blocks and
// the order in which they are summed are fixed, so no bit depends on the number of threads.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "tiles.h"

#define DECLARE(NAME) \
    namespace NAME { \
    extern const Runner of_double, of_single; \
    extern const Normals normals; \
    }
DECLARE(baseline)
#ifdef WITH_X86
DECLARE(avx2)
DECLARE(avx512)
#endif

namespace {

const int64_t BLOCK = 1024;            // prompts, of one replica
const double WORTH_A_THREAD = 200000;  // multiplications

struct Instructions {
    const char* name;
    const Runner *of_double, *of_single;
    Normals normals;
    int64_t bytes;
};

int available(Instructions* found) {
    int n = 0;
    found[n++] = {"baseline", &baseline::of_double, &baseline::of_single, baseline::normals, 16};
#ifdef WITH_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[n++] = {"avx2", &avx2::of_double, &avx2::of_single, avx2::normals, 32};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        found[n++] = {"avx512", &avx512::of_double, &avx512::of_single, avx512::normals, 64};
#endif
    return n;
}

// What a thread needs, freed when it ends.
struct Memory {
    void* at;
    Memory(const Program& program, int64_t bytes) : at(nullptr) {
        if (posix_memalign(&at, 64, (2 * program.n_slots + program.n_persistent + 1) * bytes)) throw std::bad_alloc();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { free(at); }
};

struct Plan {
    const Runner& runner;
    void* made;
    Plan(const Runner& of, const Program& program) : runner(of), made(of.plan(program)) {
        if (!made) throw std::bad_alloc();
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() { runner.release(made); }
};

double multiplications(const Program& program) {
    double found = 0;
    for (int64_t i = 0; i < program.n_ops; i++) {
        const Op& op = program.ops[i];
        found += double(op.rows) * op.cols * (op.kind == PRODUCT ? op.inner : 1);
    }
    return found;
}

}  // namespace

extern "C" {

const char* icl_kernel_source() { return SOURCE_DIGEST; }

int icl_kernel_instructions(const char** names, int most) {
    Instructions found[3];
    const int n = std::min(available(found), most);
    for (int i = 0; i < n; i++) names[i] = found[i].name;
    return n;
}

void icl_kernel_normals(int instructions, double* first, double* second, int64_t n) {
    Instructions known[3];
    available(known);
    known[instructions].normals(first, second, n);
}

// What one thread can do: `icl bench` times it.
int64_t icl_kernel_multiply_adds(int instructions, int single, int64_t rounds) {
    Instructions known[3];
    available(known);
    const Instructions& chosen = known[instructions];
    return (single ? *chosen.of_single : *chosen.of_double).multiply_adds(rounds);
}

// Mean risk over the prompts of each replica and, where `gradients` is not null, its gradient: (replicas,
// n_gradient). 0, or 1 where memory does not suffice.
int icl_kernel_run(const Program* program, int instructions, int single, int threads, int64_t replicas, int64_t batch,
                   const void* const* data, double* risks, double* gradients) {
    try {
        Instructions known[3];
        available(known);
        const Instructions& chosen = known[instructions];
        const Plan plan(single ? *chosen.of_single : *chosen.of_double, *program);
        const int64_t blocks = (batch + BLOCK - 1) / BLOCK, tasks = replicas * blocks, n = program->n_gradient;
        std::vector<double> risk(tasks), gradient(gradients ? tasks * n : 0);
        std::atomic<int64_t> next(0);
        std::atomic<bool> failed(false);
        auto work = [&]() {
            try {
                Memory memory(*program, chosen.bytes);
                for (int64_t task; (task = next++) < tasks;) {
                    const int64_t first = task % blocks * BLOCK;
                    plan.runner.run(plan.made, *program,
                                    {data, batch, task / blocks, first, std::min(BLOCK, batch - first),
                                     gradients != nullptr, memory.at, &risk[task],
                                     gradients ? &gradient[task * n] : nullptr});
                }
            } catch (...) {
                failed = true;
            }
        };
        const double worth = multiplications(*program) * double(replicas) * double(batch) / WORTH_A_THREAD;
        const int64_t others = std::min<int64_t>({threads, tasks, int64_t(std::min(worth, 1e6)) + 1}) - 1;
        std::vector<std::thread> started;
        try {
            for (int64_t i = 0; i < others; i++) started.emplace_back(work);
        } catch (...) {
            // fewer threads, the same sums
        }
        work();
        for (std::thread& one : started) one.join();
        if (failed) return 1;
        for (int64_t r = 0; r < replicas; r++) {
            risks[r] = 0;
            if (gradients) std::fill(gradients + r * n, gradients + (r + 1) * n, 0.0);
            for (int64_t task = r * blocks; task < (r + 1) * blocks; task++) {
                risks[r] += risk[task];
                for (int64_t i = 0; gradients && i < n; i++) gradients[r * n + i] += gradient[task * n + i];
            }
        }
        return 0;
    } catch (...) {
        return 1;
    }
}
}
