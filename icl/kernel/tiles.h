// A recorded program, as icl/kernel/program.py encodes it, and what runs it over one block of prompts.
#pragma once
#include <cstdint>

// A matrix among the slots: entry (i, j) is at value + i * row + j * column, its gradient at gradient + the same.
// `mode` says what is done with the gradient: nothing; added to; written, as the first of a tile to do so; or
// written with the gradient of a product's `plus`, which is the same matrix, in it.
struct View {
    int64_t value, row, column, gradient, mode;
};
enum Mode { NONE = 0, ADD = 1, ASSIGN = 2, WITH_PLUS = 3 };

enum Kind {
    PRODUCT = 0,    // out = plus + a b
    LINEAR = 1,     // out = alpha a + beta b
    ENTRYWISE = 2,  // out = a * b, entry by entry
    GATHER = 3,     // out[i] = slot list[i]
    ROW_SUMS = 4,   // out[i] = sum_j a[i, j]
    SQUARED_NORM = 5,  // out = sum_ij a[i, j]^2
};

// `out` is contiguous: rows x cols, row by row. Gradients at -1 are not wanted.
struct Op {
    int64_t kind, rows, cols, inner, out, out_gradient;
    View a, b, plus;  // without `plus` its value is -1; so it is with LINEAR's b
    double alpha, beta;
    int64_t list;  // where GATHER's slots begin
};
static_assert(sizeof(Op) == 24 * 8, "as icl/kernel/program.py writes it");

struct Input {
    int64_t slot, count, per_prompt, gradient;  // gradient: where its own begins, or -1
};

struct Program {
    const Op* ops;
    const Input* inputs;
    const int64_t* lists;  // GATHER's, and at `zeros` the gradients that a tile begins with at 0
    int64_t n_ops, n_inputs, n_slots;
    int64_t n_prologue;    // ops that see weights alone: once for a block
    int64_t n_persistent;  // slots that outlive a tile: weights and what the prologue made of them
    int64_t zeros, n_zeros, result, n_gradient;
};
static_assert(sizeof(Program) == 12 * 8, "as icl/kernel/library.py writes it");

// One replica, prompts first .. first + count of `batch`; data[i] is input i: (replicas, count) or, per prompt,
// (replicas, count, batch).
struct Block {
    const void* const* data;
    int64_t batch, replica, first, count;
    bool with_gradient;
    void* memory;      // vectors: values, gradients, and sums of gradients that outlive a tile
    double* risk;      // sum over these prompts / batch
    double* gradient;  // n_gradient numbers of it
};

// What one instruction set and precision makes of programs. A plan is null where memory does not suffice.
struct Runner {
    void* (*plan)(const Program&);
    void (*release)(void* plan);
    void (*run)(const void* plan, const Program&, const Block&);
    int64_t (*multiply_adds)(int64_t rounds);  // does so many for each round and returns their number
};

// Box and Muller's formula, in place: of two uniform numbers in [0, 1) each, two independent normal ones.
typedef void (*Normals)(double* first, double* second, int64_t n);
