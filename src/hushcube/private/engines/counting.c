/* Counting in compiled code: the cell of every row of a table, and one more in it.            [compiled.py calls it]

   The cell of a row is a mixed-radix number, ((c_0 n_1 + c_1) n_2 + c_2) ... The cells of some rows are computed
   together, which compilers turn into vector instructions, and wait in the nearest cache to be counted, four at a time.
   The caller has seen to it that every code is below its size, and that the cells of each table fit into 32 bits. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TOGETHER 2048 /* rows */
#define FEW_CELLS 16384

/* Loops over rows are compiled twice, and the machine takes the wider instructions if it has them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define WIDER __attribute__((target_clones("avx2", "default")))
#else
#define WIDER
#endif

struct rows {
    size_t rows;
    const void *const *columns;
    const uint8_t *widths; /* bytes of a code: 1, 2 or 4 */
    const uint32_t *sizes;
    const uint64_t *weights; /* what each row counts for, modulo 2^64; null: one */
};

/* cells * size + codes, or the codes alone where they are the first. */
#define JOIN(CELL, CODE)                                                                                               \
    WIDER static void join_##CELL##_##CODE(CELL *restrict cells, const CODE *restrict codes, size_t rows, CELL size)   \
    {                                                                                                                  \
        if (size)                                                                                                      \
            for (size_t r = 0; r < rows; r++)                                                                          \
                cells[r] = (CELL)(cells[r] * size + codes[r]);                                                         \
        else                                                                                                           \
            for (size_t r = 0; r < rows; r++)                                                                          \
                cells[r] = (CELL)codes[r];                                                                             \
    }

/* The cells of rows from `start` on, in a table of `order` attributes, one at least. */
#define PLACE(CELL)                                                                                                    \
    JOIN(CELL, uint8_t)                                                                                                \
    JOIN(CELL, uint16_t)                                                                                               \
    JOIN(CELL, uint32_t)                                                                                               \
    static void place_##CELL(const struct rows *all, size_t order, const int32_t *table, size_t start, size_t rows,    \
                             CELL *cells)                                                                              \
    {                                                                                                                  \
        for (size_t k = 0; k < order; k++) {                                                                           \
            const void *codes = all->columns[table[k]];                                                                \
            CELL size = k ? (CELL)all->sizes[table[k]] : 0;                                                            \
            switch (all->widths[table[k]]) {                                                                           \
            case 1: join_##CELL##_uint8_t(cells, (const uint8_t *)codes + start, rows, size); break;                   \
            case 2: join_##CELL##_uint16_t(cells, (const uint16_t *)codes + start, rows, size); break;                 \
            default: join_##CELL##_uint32_t(cells, (const uint32_t *)codes + start, rows, size);                       \
            }                                                                                                          \
        }                                                                                                              \
    }

PLACE(uint16_t)
PLACE(uint32_t)

/* One more in each cell, four at a time. */
#define COUNT(CELL, TOTAL)                                                                                             \
    static void count_##CELL##_##TOTAL(const CELL *cells, size_t rows, TOTAL *totals)                                  \
    {                                                                                                                  \
        size_t r = 0;                                                                                                  \
        for (; r + 4 <= rows; r += 4) {                                                                                \
            size_t a = cells[r], b = cells[r + 1], c = cells[r + 2], d = cells[r + 3];                                 \
            totals[a]++, totals[b]++, totals[c]++, totals[d]++;                                                        \
        }                                                                                                              \
        for (; r < rows; r++)                                                                                          \
            totals[cells[r]]++;                                                                                        \
    }

COUNT(uint16_t, uint16_t)
COUNT(uint16_t, uint64_t)
COUNT(uint32_t, uint64_t)

/* A table of few cells and many rows: counts of 16 bits stay in the nearest cache, and are added up before they overflow.
   Rows that are left, fewer than would be worth that, are for the caller to add. */
static size_t count_many(const struct rows *all, size_t order, const int32_t *table, size_t cells, uint64_t *totals)
{
    uint16_t places[TOGETHER], counts[FEW_CELLS];
    size_t start = 0;
    while (all->rows - start >= 2 * cells) {
        size_t stop = all->rows - start < UINT16_MAX ? all->rows : start + UINT16_MAX;
        memset(counts, 0, cells * sizeof *counts);
        while (start < stop) {
            size_t rows = stop - start < TOGETHER ? stop - start : TOGETHER;
            place_uint16_t(all, order, table, start, rows, places);
            count_uint16_t_uint16_t(places, rows, counts);
            start += rows;
        }
        for (size_t c = 0; c < cells; c++)
            totals[c] += counts[c];
    }
    return start;
}

#define ADD(CELL)                                                                                                      \
    static void add_##CELL(const struct rows *all, size_t order, const int32_t *table, size_t start, uint64_t *totals) \
    {                                                                                                                  \
        CELL places[TOGETHER];                                                                                         \
        for (; start < all->rows; start += TOGETHER) {                                                                 \
            size_t rows = all->rows - start < TOGETHER ? all->rows - start : TOGETHER;                                 \
            place_##CELL(all, order, table, start, rows, places);                                                      \
            if (all->weights)                                                                                          \
                for (size_t r = 0; r < rows; r++)                                                                      \
                    totals[places[r]] += all->weights[start + r];                                                      \
            else                                                                                                       \
                count_##CELL##_uint64_t(places, rows, totals);                                                         \
        }                                                                                                              \
    }

ADD(uint16_t)
ADD(uint32_t)

/* Add rows to tables of so many attributes and cells each; attributes are positions of columns. */
void hushcube_count(const struct rows *all, size_t tables, size_t order, const int32_t *attributes, size_t cells,
                    uint64_t *totals)
{
    for (size_t t = 0; t < tables; t++, attributes += order, totals += cells) {
        if (cells > UINT16_MAX) {
            add_uint32_t(all, order, attributes, 0, totals);
        } else {
            int many = cells <= FEW_CELLS && !all->weights;
            size_t done = many ? count_many(all, order, attributes, cells, totals) : 0;
            add_uint16_t(all, order, attributes, done, totals);
        }
    }
}
