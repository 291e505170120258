// The program over tiles of prompts: every slot is a vector with one prompt in each lane, and a tile goes all the
// way forward and back before the next. Compiled once for each instruction set, with NAMESPACE its name and BYTES
// the width of its registers. Nothing of the C++ library is used here: the linker could give its instantiations,
// made for newer processors, to the rest.
#include <cstdlib>
#include <cstring>

#if BYTES > 16
#include <immintrin.h>
#endif

#include "tiles.h"

#define INLINE inline __attribute__((always_inline))

namespace {

// Blocks of a product that fit the registers, beside what they are made of.
#if BYTES == 64
enum { MOST_ROWS = 5, MOST_COLS = 6 };
#else
enum { MOST_ROWS = 3, MOST_COLS = 4 };
#endif
enum { LONGEST_ROW = 8 };
enum { AHEAD = 128 };  // bytes from the prompts that are read to those that are asked for: two tiles of AVX-512

// Strides and offsets from the memory's beginning are in bytes.
struct Matrix {
    int64_t at, row, column;
    Matrix from(int64_t i, int64_t j) const { return {at + i * row + j * column, row, column}; }
    Matrix transposed() const { return {at, column, row}; }
};

// A function that writes to memory copies what it needs of this first: as far as the compiler knows, a vector that is
// written may be part of it, and it would be read again after each.
struct Step {
    void (*run)(char* memory, const Step& step);
    Matrix c, a, b, plus;
    int64_t rows, cols, inner;
    double alpha, beta;
    const int64_t* list;
};

struct Plan {
    Step* steps;
    int64_t n, room;
    int64_t prologue, forward, backward, end;  // where the steps of each stage begin, the prologue's backward last
    bool failed;
    Step& add() {
        if (n == room) {
            room = 2 * room + 64;
            void* larger = realloc(steps, room * sizeof(Step));
            if (!larger) {
                failed = true;
                n = 0;
                room = room / 2 - 32;
            } else {
                steps = (Step*)larger;
            }
        }
        return steps[n++];
    }
};

template <class T>
struct Tiles {
    typedef T V __attribute__((vector_size(BYTES), may_alias));
    static const int64_t LANES = BYTES / sizeof(T);

    static INLINE V& at(char* memory, const Matrix& m, int64_t i, int64_t j) {
        return *(V*)(memory + m.at + i * m.row + j * m.column);
    }

    // c = plus + a b on ROWS x COLS entries held in registers; without plus where it is nowhere.
    template <int ROWS, int COLS, int INNER>
    static void block(char* memory, const Step& step) {
        const int64_t K = INNER ? INNER : step.inner;
        const char *a = memory + step.a.at, *b = memory + step.b.at;
        const int64_t a_next = step.a.column, b_next = step.b.row;
        int64_t a_row[ROWS], b_column[COLS];
        a_row[0] = b_column[0] = 0;
        for (int i = 1; i < ROWS; i++) a_row[i] = a_row[i - 1] + step.a.row;
        for (int j = 1; j < COLS; j++) b_column[j] = b_column[j - 1] + step.b.column;
        V sum[ROWS][COLS];
        {
            V left[ROWS];
            for (int i = 0; i < ROWS; i++) left[i] = *(const V*)(a + a_row[i]);
            for (int j = 0; j < COLS; j++) {
                const V right = *(const V*)(b + b_column[j]);
                for (int i = 0; i < ROWS; i++) sum[i][j] = left[i] * right;
            }
        }
#pragma GCC unroll 8
        for (int64_t k = 1; k < K; k++) {
            a += a_next, b += b_next;
            V left[ROWS];
            for (int i = 0; i < ROWS; i++) left[i] = *(const V*)(a + a_row[i]);
            for (int j = 0; j < COLS; j++) {
                const V right = *(const V*)(b + b_column[j]);
                for (int i = 0; i < ROWS; i++) sum[i][j] += left[i] * right;
            }
        }
        const Matrix c = step.c, plus = step.plus;
        if (plus.at < 0) {
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < COLS; j++) at(memory, c, i, j) = sum[i][j];
        } else {
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < COLS; j++) at(memory, c, i, j) = at(memory, plus, i, j) + sum[i][j];
        }
    }

    typedef void (*Run)(char*, const Step&);

    template <int ROWS, int COLS>
    static Run of_inner(int64_t inner) {
        switch (inner) {
            case 1: return block<ROWS, COLS, 1>;
            case 2: return block<ROWS, COLS, 2>;
            case 3: return block<ROWS, COLS, 3>;
            case 4: return block<ROWS, COLS, 4>;
            case 5: return block<ROWS, COLS, 5>;
            case 6: return block<ROWS, COLS, 6>;
            case 7: return block<ROWS, COLS, 7>;
            case 8: return block<ROWS, COLS, 8>;
            default: return block<ROWS, COLS, 0>;
        }
    }

    template <int ROWS, int COLS>
    static Run blocked(int64_t rows, int64_t cols, int64_t inner) {
        if constexpr (ROWS > 1) {
            if (rows < ROWS) return blocked<ROWS - 1, ROWS == 2 ? int(LONGEST_ROW) : COLS>(rows, cols, inner);
        }
        if constexpr (COLS > 1) {
            if (cols < COLS) return blocked<ROWS, COLS - 1>(rows, cols, inner);
        }
        return of_inner<ROWS, COLS>(inner);
    }

    // c = plus + a b
    static void product(Plan& plan, Matrix c, Matrix a, Matrix b, Matrix plus, int64_t rows, int64_t cols, int64_t inner) {
        if (cols < rows && cols <= MOST_ROWS) {  // long rows are the better blocks
            const Matrix left = a;
            const int64_t was = rows;
            a = b.transposed(), b = left.transposed(), c = c.transposed(), plus = plus.transposed();
            rows = cols, cols = was;
        }
        for (int64_t i = 0, R; i < rows; i += R) {
            R = even(rows - i, MOST_ROWS);
            for (int64_t j = 0, C; j < cols; j += C) {
                C = even(cols - j, R == 1 ? LONGEST_ROW : R == 5 ? 5 : MOST_COLS);
                Step& step = plan.add();
                step.run = blocked<MOST_ROWS, MOST_COLS>(R, C, inner);
                step.c = c.from(i, j), step.a = a.from(i, 0), step.b = b.from(0, j);
                step.plus = plus.at < 0 ? plus : plus.from(i, j);
                step.inner = inner;
            }
        }
    }

    // The next block of n rows or columns, as even as blocks of `most` allow.
    static int64_t even(int64_t n, int64_t most) {
        const int64_t blocks = (n + most - 1) / most;
        return (n + blocks - 1) / blocks;
    }

    // c = alpha a, or c + alpha a
    template <bool ADDED>
    static void scaled(char* memory, const Step& step) {
        const Matrix c = step.c, a = step.a;
        const int64_t rows = step.rows, cols = step.cols;
        const T alpha = T(step.alpha);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                V &to = at(memory, c, i, j), part = alpha * at(memory, a, i, j);
                to = ADDED ? to + part : part;
            }
    }

    // c = alpha a * b entry by entry, or c + alpha a * b
    template <bool ADDED>
    static void multiplied(char* memory, const Step& step) {
        const Matrix c = step.c, a = step.a, b = step.b;
        const int64_t rows = step.rows, cols = step.cols;
        const T alpha = T(step.alpha);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                V &to = at(memory, c, i, j), part = alpha * at(memory, a, i, j) * at(memory, b, i, j);
                to = ADDED ? to + part : part;
            }
    }

    static void combined(char* memory, const Step& step) {
        const Matrix c = step.c, a = step.a, b = step.b;
        const int64_t rows = step.rows, cols = step.cols;
        const T alpha = T(step.alpha), beta = T(step.beta);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                at(memory, c, i, j) = alpha * at(memory, a, i, j) + beta * at(memory, b, i, j);
    }

    static void row_sums(char* memory, const Step& step) {
        const Matrix c = step.c, a = step.a;
        const int64_t rows = step.rows, cols = step.cols;
        for (int64_t i = 0; i < rows; i++) {
            V sum = at(memory, a, i, 0);
            for (int64_t j = 1; j < cols; j++) sum += at(memory, a, i, j);
            at(memory, c, i, 0) = sum;
        }
    }

    // c = sum of a[i, j]^2, by four sums, none of which waits for another
    static void squared_norm(char* memory, const Step& step) {
        const Matrix c = step.c, a = step.a;
        const int64_t rows = step.rows, cols = step.cols;
        V sum[4] = {};
        for (int64_t i = 0; i < rows; i++) {
            int64_t j = 0;
            for (; j + 4 <= cols; j += 4)
                for (int k = 0; k < 4; k++) sum[k] += at(memory, a, i, j + k) * at(memory, a, i, j + k);
            for (; j < cols; j++) sum[0] += at(memory, a, i, j) * at(memory, a, i, j);
        }
        at(memory, c, 0, 0) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    static void gathered(char* memory, const Step& step) {
        V* to = &at(memory, step.c, 0, 0);
        const int64_t *list = step.list, *end = list + step.cols;
        while (list < end) *to++ = *(const V*)(memory + *list++ * BYTES);
    }

    // The gradients, at step.a, of the slots listed
    static void scattered(char* memory, const Step& step) {
        const V* from = &at(memory, step.c, 0, 0);
        char* to = memory + step.a.at;
        const int64_t *list = step.list, *end = list + step.cols;
        while (list < end) *(V*)(to + *list++ * BYTES) += *from++;
    }

    static void cleared(char* memory, const Step& step) {
        char* to = memory + step.a.at;
        const int64_t *list = step.list, *end = list + step.cols;
        while (list < end) *(V*)(to + *list++ * BYTES) = V{};
    }

    static void entries(Plan& plan, Run run, Matrix c, Matrix a, Matrix b, int64_t rows, int64_t cols, double alpha = 1,
                        double beta = 1) {
        Step& step = plan.add();
        step.run = run, step.c = c, step.a = a, step.b = b, step.rows = rows, step.cols = cols;
        step.alpha = alpha, step.beta = beta;
    }

    static void listed(Plan& plan, Run run, int64_t c, int64_t base, const int64_t* list, int64_t count) {
        Step& step = plan.add();
        step.run = run, step.c = {c * BYTES, 0, BYTES}, step.a = {base * BYTES, 0, 0}, step.cols = count, step.list = list;
    }

    static Matrix matrix(int64_t slot, const View& view) { return {slot * BYTES, view.row * BYTES, view.column * BYTES}; }

    static void plan_forward(Plan& plan, const Program& program, const Op& op) {
        const Matrix out = {op.out * BYTES, op.cols * BYTES, BYTES}, none = {-1, 0, 0};
        const Matrix a = matrix(op.a.value, op.a), b = matrix(op.b.value, op.b);
        switch (op.kind) {
            case PRODUCT:
                return product(plan, out, a, b, op.plus.value < 0 ? none : matrix(op.plus.value, op.plus), op.rows, op.cols, op.inner);
            case LINEAR:
                return entries(plan, op.b.value < 0 ? scaled<false> : combined, out, a, b, op.rows, op.cols, op.alpha, op.beta);
            case ENTRYWISE:
                return entries(plan, multiplied<false>, out, a, b, op.rows, op.cols);
            case GATHER:
                return listed(plan, gathered, op.out, 0, program.lists + op.list, op.cols);
            case ROW_SUMS:
                return entries(plan, row_sums, {op.out * BYTES, BYTES, 0}, a, a, op.rows, op.cols);
            case SQUARED_NORM:
                return entries(plan, squared_norm, out, a, a, op.rows, op.cols);
        }
    }

    static void plan_backward(Plan& plan, const Program& program, const Op& op) {
        if (op.out_gradient < 0) return;
        const int64_t gradients = program.n_slots;
        const Matrix out = {(gradients + op.out_gradient) * BYTES, op.cols * BYTES, BYTES}, none = {-1, 0, 0};
        const Matrix a = matrix(op.a.value, op.a), b = matrix(op.b.value, op.b);
        const Matrix of_a = matrix(gradients + op.a.gradient, op.a), of_b = matrix(gradients + op.b.gradient, op.b);
        const Matrix of_plus = matrix(gradients + op.plus.gradient, op.plus);
        switch (op.kind) {
            case PRODUCT: {
                if (op.plus.mode)
                    entries(plan, op.plus.mode == ADD ? scaled<true> : scaled<false>, of_plus, out, out, op.rows, op.cols);
                const Matrix before_a = op.a.mode == ADD ? of_a : op.a.mode == WITH_PLUS ? out : none;
                const Matrix before_b = op.b.mode == ADD ? of_b : op.b.mode == WITH_PLUS ? out : none;
                if (op.a.mode) product(plan, of_a, out, b.transposed(), before_a, op.rows, op.inner, op.cols);
                if (op.b.mode) product(plan, of_b, a.transposed(), out, before_b, op.inner, op.cols, op.rows);
                return;
            }
            case LINEAR:
                if (op.a.mode) entries(plan, op.a.mode == ADD ? scaled<true> : scaled<false>, of_a, out, out, op.rows, op.cols, op.alpha);
                if (op.b.mode) entries(plan, op.b.mode == ADD ? scaled<true> : scaled<false>, of_b, out, out, op.rows, op.cols, op.beta);
                return;
            case ENTRYWISE:
                if (op.a.mode) entries(plan, op.a.mode == ADD ? multiplied<true> : multiplied<false>, of_a, out, b, op.rows, op.cols);
                if (op.b.mode) entries(plan, op.b.mode == ADD ? multiplied<true> : multiplied<false>, of_b, out, a, op.rows, op.cols);
                return;
            case GATHER:
                return listed(plan, scattered, gradients + op.out_gradient, gradients, program.lists + op.list + op.cols, op.cols);
            case ROW_SUMS:
                if (op.a.mode)
                    entries(plan, op.a.mode == ADD ? scaled<true> : scaled<false>, of_a, {out.at, BYTES, 0}, out, op.rows, op.cols);
                return;
            case SQUARED_NORM:
                if (op.a.mode)
                    entries(plan, op.a.mode == ADD ? multiplied<true> : multiplied<false>, of_a, a, {out.at, 0, 0}, op.rows, op.cols, 2);
        }
    }

    static void* make_plan(const Program& program) {
        Plan* plan = (Plan*)calloc(1, sizeof(Plan));
        if (!plan) return nullptr;
        for (int64_t i = 0; i < program.n_ops; i++) {
            if (i == program.n_prologue) plan->forward = plan->n;
            plan_forward(*plan, program, program.ops[i]);
        }
        if (program.n_prologue == program.n_ops) plan->forward = plan->n;
        plan->backward = plan->n;
        if (program.n_zeros) listed(*plan, cleared, 0, program.n_slots, program.lists + program.zeros, program.n_zeros);
        for (int64_t i = program.n_ops - 1; i >= program.n_prologue; i--) plan_backward(*plan, program, program.ops[i]);
        plan->prologue = plan->n;
        for (int64_t i = program.n_prologue - 1; i >= 0; i--) plan_backward(*plan, program, program.ops[i]);
        plan->end = plan->n;
        if (!plan->failed) return plan;
        release(plan);
        return nullptr;
    }

    static void release(void* made) {
        Plan* plan = (Plan*)made;
        free(plan->steps);
        free(plan);
    }

    static INLINE void take(const Plan& plan, char* memory, int64_t first, int64_t last) {
        for (const Step *step = plan.steps + first, *end = plan.steps + last; step < end; step++) step->run(memory, *step);
    }

    // The prompts from `first` in the lanes; where fewer are left, the last one in the lanes beyond.
    static INLINE void load(const Program& program, const Block& block, V* X, int64_t first, int64_t valid) {
        for (int64_t n = 0; n < program.n_inputs; n++) {
            const Input& input = program.inputs[n];
            if (!input.per_prompt) continue;
            const T* data = (const T*)block.data[n] + block.replica * input.count * block.batch + first;
            V* slot = X + input.slot;
            if (valid == LANES) {
                for (int64_t i = 0; i < input.count; i++, data += block.batch) {
                    __builtin_prefetch((const char*)data + AHEAD);
                    memcpy(slot + i, data, sizeof(V));
                }
            } else {
                for (int64_t i = 0; i < input.count; i++, data += block.batch)
                    for (int64_t lane = 0; lane < LANES; lane++) slot[i][lane] = data[lane < valid ? lane : valid - 1];
            }
        }
    }

    static INLINE void pass(const Plan& plan, const Program& program, const Block& block, char* memory) {
        take(plan, memory, plan.forward, plan.backward);
        if (!block.with_gradient) return;
        ((V*)memory)[program.n_slots + program.result] = V{} + T(1) / T(block.batch);
        take(plan, memory, plan.backward, plan.prologue);
    }

    static void run(const void* made, const Program& program, const Block& block) {
        const Plan& plan = *(const Plan*)made;
        char* memory = (char*)block.memory;
        V *X = (V*)memory, *G = X + program.n_slots, *sums = G + program.n_slots;
        for (int64_t n = 0; n < program.n_inputs; n++) {
            const Input& input = program.inputs[n];
            if (input.per_prompt) continue;
            const T* data = (const T*)block.data[n] + block.replica * input.count;
            for (int64_t i = 0; i < input.count; i++) X[input.slot + i] = V{} + data[i];
        }
        const int64_t kept = program.n_persistent;
        if (block.with_gradient) memset((void*)G, 0, sizeof(V) * kept);
        take(plan, memory, 0, plan.forward);

        V risks = V{};
        const int64_t whole = block.count / LANES * LANES, rest = block.count - whole;
        for (int64_t s = 0; s < whole; s += LANES) {
            load(program, block, X, block.first + s, LANES);
            pass(plan, program, block, memory);
            risks += X[program.result];
        }
        double risk = 0;
        for (int64_t lane = 0; lane < LANES; lane++) risk += risks[lane];
        if (rest) {
            // Lanes beyond the last prompt are left out of the sums: 0 times what they hold might be no number.
            if (block.with_gradient) {
                memcpy((void*)sums, (const void*)G, sizeof(V) * kept);
                memset((void*)G, 0, sizeof(V) * kept);
            }
            load(program, block, X, block.first + whole, rest);
            pass(plan, program, block, memory);
            for (int64_t lane = 0; lane < rest; lane++) risk += X[program.result][lane];
            if (block.with_gradient)
                for (int64_t i = 0; i < kept; i++) {
                    for (int64_t lane = rest; lane < LANES; lane++) G[i][lane] = 0;
                    G[i] += sums[i];
                }
        }
        *block.risk = risk / double(block.batch);
        if (!block.with_gradient) return;
        take(plan, memory, plan.prologue, plan.end);
        for (int64_t n = 0; n < program.n_inputs; n++) {
            const Input& input = program.inputs[n];
            if (input.gradient < 0) continue;
            for (int64_t i = 0; i < input.count; i++) {
                double sum = 0;
                for (int64_t lane = 0; lane < LANES; lane++) sum += G[input.slot + i][lane];
                block.gradient[input.gradient + i] = sum;
            }
        }
    }

    // As many sums as keep two units of five cycles busy; none waits for another. Returns how many multiply-adds.
    static int64_t multiply_adds(int64_t rounds) {
        const int SUMS = 10;
        V sum[SUMS];
        const V half = V{} + T(0.5);
        for (int i = 0; i < SUMS; i++) sum[i] = V{} + T(i);
        for (int64_t k = 0; k < rounds; k++)
            for (int i = 0; i < SUMS; i++) sum[i] = sum[i] * half + half;
        volatile T seen = 0;
        for (int i = 0; i < SUMS; i++) seen = seen + sum[i][0];
        return rounds * SUMS * LANES;
    }

    static constexpr Runner runner() { return {make_plan, release, run, multiply_adds}; }
};

}  // namespace

namespace {

typedef double D __attribute__((vector_size(BYTES), may_alias));
typedef int64_t I __attribute__((vector_size(BYTES)));
typedef uint64_t U __attribute__((vector_size(BYTES)));
const int64_t LANES = BYTES / 8;
const double TO_INTEGER = 0x1.8p52;  // added, it leaves the nearest integer in the lowest bits

INLINE D square_root(D x) {
#if BYTES == 64
    return (D)_mm512_sqrt_pd((__m512d)x);
#elif BYTES == 32
    return (D)_mm256_sqrt_pd((__m256d)x);
#else
    for (int64_t i = 0; i < LANES; i++) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

// Of 0 < x <= 1, normal numbers. The polynomials here and below are those of Sun's fdlibm.
INLINE D logarithm(D x) {
    const U from_root = (U)x - 0x3fe6a09e667f3bcdULL + (1024ULL << 52);  // x = 2^k m, 1/sqrt(2) <= m < sqrt(2)
    const I k = (I)(from_root >> 52) - 1024;
    const D exponent = (D)((I)(D{} + TO_INTEGER) + k) - TO_INTEGER;
    const D f = (D)((U)x - ((U)k << 52)) - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    const D series = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * (2.857142874366239149e-01 +
        z * (2.222219843214978396e-01 + z * (1.818357216161805012e-01 + z * (1.531383769920937332e-01 +
        z * 1.479819860511658591e-01))))));
    return exponent * 6.93147180369123816490e-01 -
           ((half - (s * (half + series) + exponent * 1.90821492927058770002e-10)) - f);
}

INLINE void normals_of(D& first, D& second) {
    const D radius = square_root(-2.0 * logarithm(1.0 - first));
    const D turned = 4.0 * second + TO_INTEGER;  // quarters of a turn
    const I quarter = (I)turned;
    const D x = (second - 0.25 * (turned - TO_INTEGER)) * 6.283185307179586, z = x * x;
    const D sine = x + x * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 +
        z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 +
        z * 1.58969099521155010221e-10)))));
    const D cosine = 1.0 - (0.5 * z - z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 +
        z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 +
        z * -1.13596475577881948265e-11))))));
    const I odd = -(quarter & 1), along = ((I)cosine & ~odd) | ((I)sine & odd), across = ((I)sine & ~odd) | ((I)cosine & odd);
    first = radius * (D)(along ^ (((quarter + 1) & 2) << 62));
    second = radius * (D)(across ^ ((quarter & 2) << 62));
}

INLINE void some_normals(double* first, double* second, size_t bytes) {
    D one = {}, other = {};
    memcpy(&one, first, bytes);
    memcpy(&other, second, bytes);
    normals_of(one, other);
    memcpy(first, &one, bytes);
    memcpy(second, &other, bytes);
}

void all_normals(double* first, double* second, int64_t n) {
    const int64_t whole = n / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) some_normals(first + i, second + i, sizeof(D));
    if (whole < n) some_normals(first + whole, second + whole, sizeof(double) * (n - whole));
}

}  // namespace

namespace NAMESPACE {
extern const Runner of_double, of_single;
const Runner of_double = Tiles<double>::runner(), of_single = Tiles<float>::runner();
extern const Normals normals;
const Normals normals = all_normals;
}  // namespace NAMESPACE
