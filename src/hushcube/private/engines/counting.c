/* Counting in compiled code: the cell of every row of a table, and one more in it.            [compiled.py calls it]

   The cell of a row is a mixed-radix number, ((c_0 n_1 + c_1) n_2 + c_2) ... The cells of some rows are computed
   together, which compilers turn into vector instructions, and wait in the nearest cache to be counted, four at a time.
   The caller has seen to it that every code is below its size, and that the cells of each table fit into 32 bits. */

#include <stddef.h>
#include <stdint.h>

#define TOGETHER 2048 /* rows */

struct rows {
    size_t rows;
    const void *const *columns;
    const uint8_t *widths; /* bytes of a code: 1, 2 or 4 */
    const uint32_t *sizes;
    const uint64_t *weights; /* what each row counts for, modulo 2^64; null: one */
};

#define JOIN(CELL, CODE)                                                                                               \
    static void join_##CELL##_##CODE(CELL *restrict cells, const CODE *restrict codes, size_t rows, CELL size)         \
    {                                                                                                                  \
        for (size_t r = 0; r < rows; r++)                                                                              \
            cells[r] = (CELL)(cells[r] * size + codes[r]);                                                             \
    }

#define COUNT(CELL)                                                                                                    \
    JOIN(CELL, uint8_t)                                                                                                \
    JOIN(CELL, uint16_t)                                                                                               \
    JOIN(CELL, uint32_t)                                                                                               \
    static void count_##CELL(const struct rows *all, size_t order, const int32_t *table, uint64_t *totals)             \
    {                                                                                                                  \
        for (size_t start = 0; start < all->rows; start += TOGETHER) {                                                 \
            size_t rows = all->rows - start < TOGETHER ? all->rows - start : TOGETHER, r = 0;                          \
            CELL cells[TOGETHER] = {0};                                                                                \
            for (size_t k = 0; k < order; k++) {                                                                       \
                const void *codes = all->columns[table[k]];                                                            \
                CELL size = (CELL)all->sizes[table[k]];                                                                \
                switch (all->widths[table[k]]) {                                                                       \
                case 1: join_##CELL##_uint8_t(cells, (const uint8_t *)codes + start, rows, size); break;               \
                case 2: join_##CELL##_uint16_t(cells, (const uint16_t *)codes + start, rows, size); break;             \
                default: join_##CELL##_uint32_t(cells, (const uint32_t *)codes + start, rows, size);                   \
                }                                                                                                      \
            }                                                                                                          \
            if (all->weights) {                                                                                        \
                for (; r < rows; r++)                                                                                  \
                    totals[cells[r]] += all->weights[start + r];                                                       \
                continue;                                                                                              \
            }                                                                                                          \
            for (; r + 4 <= rows; r += 4) {                                                                            \
                size_t a = cells[r], b = cells[r + 1], c = cells[r + 2], d = cells[r + 3];                             \
                totals[a]++, totals[b]++, totals[c]++, totals[d]++;                                                    \
            }                                                                                                          \
            for (; r < rows; r++)                                                                                      \
                totals[cells[r]]++;                                                                                    \
        }                                                                                                              \
    }

COUNT(uint16_t)
COUNT(uint32_t)

/* Add rows to tables of so many attributes and cells each; attributes are positions of columns. */
void hushcube_count(const struct rows *all, size_t tables, size_t order, const int32_t *attributes, size_t cells,
                    uint64_t *totals)
{
    for (size_t t = 0; t < tables; t++, attributes += order, totals += cells) {
        if (cells <= UINT16_MAX)
            count_uint16_t(all, order, attributes, totals);
        else
            count_uint32_t(all, order, attributes, totals);
    }
}
