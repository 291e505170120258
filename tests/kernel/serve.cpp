// The kernel of another processor, as a process: what a call of icl_kernel_run or icl_kernel_normals reads comes on
// stdin, what it writes goes to stdout. tests/kernel/conftest.py is the other end, scripts/arm64.sh builds it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tiles.h"

extern "C" {
void icl_kernel_normals(int instructions, double* first, double* second, int64_t n);
int icl_kernel_run(const Program*, int instructions, int single, int threads, int64_t replicas, int64_t batch,
                   const void* const* data, double* risks, double* gradients);
}

template <class T>
static std::vector<T> read(int64_t n) {
    std::vector<T> found(n);
    if (int64_t(fread(found.data(), sizeof(T), n, stdin)) != n) exit(1);
    return found;
}

static void write(const std::vector<double>& numbers) {
    fwrite(numbers.data(), sizeof(double), numbers.size(), stdout);
    fflush(stdout);
}

int main() {
    for (int64_t n; fread(&n, sizeof(n), 1, stdin) == 1;) {
        if (n >= 0) {
            auto both = read<double>(2 * n);
            icl_kernel_normals(0, both.data(), both.data() + n, n);
            write(both);
            continue;
        }
        // The nine numbers of `Program`, of how many lists, single, threads, replicas, batch, with gradient.
        const auto at = read<int64_t>(15);
        const auto ops = read<Op>(at[0]);
        const auto inputs = read<Input>(at[1]);
        const auto lists = read<int64_t>(at[9]);
        const Program program = {ops.data(), inputs.data(), lists.data(), at[0], at[1], at[2], at[3],
                                 at[4],      at[5],         at[6],        at[7], at[8]};
        const int64_t replicas = at[12], batch = at[13];
        std::vector<std::vector<char>> tensors;
        std::vector<const void*> data;
        for (const Input& input : inputs)
            tensors.push_back(read<char>(replicas * input.count * (input.per_prompt ? batch : 1) * (at[10] ? 4 : 8)));
        for (const auto& tensor : tensors) data.push_back(tensor.data());
        std::vector<double> risks(replicas), gradients(at[14] ? replicas * at[8] : 0);
        if (icl_kernel_run(&program, 0, at[10], at[11], replicas, batch, data.data(), risks.data(),
                           at[14] ? gradients.data() : nullptr))
            return 1;
        write(risks);
        write(gradients);
    }
}
