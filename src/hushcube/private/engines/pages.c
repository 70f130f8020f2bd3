/* Columns of Parquet files as codes, straight from their pages.                                      [pages.py calls it]

   A column of few values is stored as a dictionary and, for every row, the number of its value there, in a few bits.
   Whoever looks the code of each value of the dictionary up once turns these numbers into codes, and never needs the
   values themselves:

       code of row r  =  lookup[number of row r],       or `missing` where the row has no value

   Read are the pages of one column in one row group, as bytes. What is not understood is left to a library: survey says
   so before anything is decoded. Nothing is believed of these bytes: every read and write is checked against the end of
   what it is in, and a number beyond the dictionary is an error. Lengths are those of the caller; all buffers have
   SLACK bytes more, which are read but do not matter.

   Formats: Parquet's page headers are Thrift's compact protocol; numbers and marks of missing values are runs, of equal
   values or of groups of eight packed ones; pages are compressed by Snappy or not at all. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SLACK 8
#define BLOCK 1024 /* rows */
#define NESTED 8   /* structures in a page header */
#define BEYOND 0x80000000u /* marks what the dictionary does not have, in `lookup` */

enum { NOT_COMPRESSED, SNAPPY };
enum { DATA = 0, DICTIONARY = 2, DATA_2 = 3 };                      /* kinds of pages */
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 }; /* encodings */

struct bytes {
    const uint8_t *at, *end;
};

static size_t left_of(const struct bytes *b)
{
    return (size_t)(b->end - b->at);
}

/* The next n bytes; null where there are fewer. */
static const uint8_t *take(struct bytes *b, uint64_t n)
{
    const uint8_t *at = b->at;
    if (n > left_of(b))
        return NULL;
    b->at += n;
    return at;
}

static int varint(struct bytes *b, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        uint8_t next = *b->at++;
        *value |= (uint64_t)(next & 0x7f) << shift;
        if (!(next & 0x80))
            return 1;
    }
    return 0;
}

static uint32_t little_endian(const uint8_t *at, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

/* ---- Page headers: Thrift's compact protocol --------------------------------------------------------------------- */

enum { TRUE = 1, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT };

static int integer(struct bytes *b, int64_t *value)
{
    uint64_t n;
    if (!varint(b, &n))
        return 0;
    *value = (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
    return 1;
}

/* The type of the next field of a structure, 0 at its end, and the field's number, from that of the one before. */
static int next_field(struct bytes *b, unsigned *type, int64_t *number)
{
    const uint8_t *head = take(b, 1);
    if (!head)
        return 0;
    *type = *head & 15;
    if (*head >> 4)
        *number += *head >> 4;
    else if (*type && !integer(b, number))
        return 0;
    return *number >= INT16_MIN && *number <= INT16_MAX;
}

static int skip(struct bytes *b, unsigned type, unsigned depth)
{
    uint64_t n;
    int64_t number = 0;
    switch (type) {
    case TRUE:
    case FALSE: return 1;
    case BYTE: return take(b, 1) != NULL;
    case I16:
    case I32:
    case I64: return varint(b, &n);
    case DOUBLE: return take(b, 8) != NULL;
    case BINARY: return varint(b, &n) && take(b, n) != NULL;
    case STRUCT:
        if (!depth)
            return 0;
        while (next_field(b, &type, &number)) {
            if (!type)
                return 1;
            if (!skip(b, type, depth - 1))
                return 0;
        }
        return 0;
    default: return 0; /* page headers have no lists and no maps */
    }
}

/* The small fields of a structure, by their numbers up to FIELDS - 1: integers, truth values. Those of the structures
   inside it go to `inner`, which are of one kind in a page header. */
#define FIELDS 9

static int read_fields(struct bytes *b, int64_t *fields, int64_t *inner)
{
    int64_t number = 0, value;
    unsigned type;
    while (next_field(b, &type, &number)) {
        if (!type)
            return 1;
        int known = number > 0 && number < FIELDS;
        if (type == TRUE || type == FALSE) {
            if (known)
                fields[number] = type == TRUE;
        } else if (type >= I16 && type <= I64) {
            if (!integer(b, &value))
                return 0;
            if (known)
                fields[number] = value;
        } else if (type == STRUCT && inner && (number == 5 || number == 7 || number == 8)) {
            if (!read_fields(b, inner, NULL))
                return 0;
        } else if (!skip(b, type, NESTED)) {
            return 0;
        }
    }
    return 0;
}

struct page {
    int64_t kind, values, encoding, level_encoding;
    uint64_t stored, size; /* bytes, with levels: in the file, and when they are not compressed */
    uint64_t levels;       /* bytes of them where they stand before, not compressed */
    int is_compressed;
    const uint8_t *at;
};

/* The next page of a column, and its bytes. */
static int next_page(struct bytes *b, struct page *page)
{
    int64_t fields[FIELDS] = {0}, inner[FIELDS] = {0};
    inner[7] = 1; /* of the second version: is_compressed, unless it says otherwise */
    if (!read_fields(b, fields, inner) || fields[2] < 0 || fields[3] < 0)
        return 0;
    page->kind = fields[1], page->values = inner[1], page->encoding = inner[2], page->level_encoding = inner[3];
    page->size = (uint64_t)fields[2], page->stored = (uint64_t)fields[3];
    page->levels = 0, page->is_compressed = 1;
    if (page->kind == DATA_2) {
        if (inner[5] < 0 || inner[6] != 0) /* levels of repetition: a column of lists */
            return 0;
        page->encoding = inner[4], page->level_encoding = RLE;
        page->levels = (uint64_t)inner[5], page->is_compressed = inner[7] != 0;
    }
    page->at = take(b, page->stored);
    return page->at && page->values >= 0 && page->levels <= page->stored && page->levels <= page->size;
}

/* ---- Compression --------------------------------------------------------------------------------------------------- */

/* Exactly n bytes from Snappy's raw format. */
static int snappy(struct bytes from, uint8_t *to, uint64_t n)
{
    uint8_t *const start = to, *const end = to + n;
    uint64_t size;
    if (!varint(&from, &size) || size != n)
        return 0;
    while (from.at < from.end) {
        uint8_t tag = *from.at++;
        uint64_t length = tag >> 2, back;
        const uint8_t *at;
        if (!(tag & 3)) { /* as they stand */
            if (length >= 60) {
                unsigned more = (unsigned)length - 59;
                if (!(at = take(&from, more)))
                    return 0;
                length = little_endian(at, more);
            }
            length++;
            if (length > (uint64_t)(end - to) || !(at = take(&from, length)))
                return 0;
            memcpy(to, at, length);
            to += length;
            continue;
        }
        unsigned more = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4; /* a copy of what came before */
        if (!(at = take(&from, more)))
            return 0;
        back = little_endian(at, more);
        if (more == 1) {
            back |= (uint64_t)(tag >> 5) << 8;
            length = 4 + (length & 7);
        } else {
            length++;
        }
        if (!back || back > (uint64_t)(to - start) || length > (uint64_t)(end - to))
            return 0;
        if (back >= length) {
            memcpy(to, to - back, length);
            to += length;
            continue;
        }
        for (; length; length--, to++) /* it reaches into itself */
            *to = *(to - back);
    }
    return to == end;
}

static int inflate(struct bytes from, int codec, uint8_t *to, uint64_t n)
{
    if (codec == SNAPPY && (n || left_of(&from)))
        return snappy(from, to, n);
    if (left_of(&from) != n)
        return 0;
    memcpy(to, from.at, n);
    return 1;
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------- */

/* Numbers of `width` bits, up to 32: runs of equal ones, or of packed ones. */
struct runs {
    struct bytes bytes;
    uint64_t left; /* numbers of this run */
    uint32_t width, value;
    uint32_t is_packed, skipped; /* packed numbers of the next group of eight that are done */
};

static void start_runs(struct runs *runs, struct bytes bytes, uint32_t width)
{
    memset(runs, 0, sizeof *runs);
    runs->bytes = bytes, runs->width = width;
}

static int next_run(struct runs *runs)
{
    uint64_t head;
    if (!varint(&runs->bytes, &head))
        return 0;
    runs->is_packed = head & 1, runs->skipped = 0;
    if (runs->is_packed) {
        runs->left = (head >> 1) * 8;
        return runs->width ? (head >> 1) <= left_of(&runs->bytes) / runs->width : (head >> 1) < UINT32_MAX;
    }
    const uint8_t *at = take(&runs->bytes, (runs->width + 7) / 8);
    if (!at)
        return 0;
    runs->left = head >> 1, runs->value = little_endian(at, (runs->width + 7) / 8);
    return runs->width == 32 || !(runs->value >> runs->width);
}

/* Groups of eight packed numbers, each group in one word; a width that the compiler knows makes wide instructions. */
static inline void unpack_words(const uint8_t *at, uint32_t width, size_t groups, uint32_t *numbers)
{
    uint64_t word, mask = (1ull << width) - 1;
    for (; groups; groups--, at += width, numbers += 8) {
        memcpy(&word, at, 8);
        for (unsigned k = 0; k < 8; k++)
            numbers[k] = (uint32_t)((word >> (k * width)) & mask);
    }
}

static void unpack(const uint8_t *at, uint32_t width, size_t groups, uint32_t *numbers)
{
    switch (width) {
    case 1: unpack_words(at, 1, groups, numbers); return;
    case 2: unpack_words(at, 2, groups, numbers); return;
    case 3: unpack_words(at, 3, groups, numbers); return;
    case 4: unpack_words(at, 4, groups, numbers); return;
    case 5: unpack_words(at, 5, groups, numbers); return;
    case 6: unpack_words(at, 6, groups, numbers); return;
    case 7: unpack_words(at, 7, groups, numbers); return;
    case 8: unpack_words(at, 8, groups, numbers); return;
    }
    uint64_t word, mask = (1ull << width) - 1; /* wider ones begin at any bit of their own words */
    for (; groups; groups--, at += width)
        for (unsigned k = 0; k < 8; k++) {
            memcpy(&word, at + k * width / 8, 8);
            *numbers++ = (uint32_t)((word >> (k * width % 8)) & mask);
        }
}

/* The next n numbers, at most BLOCK. */
static int next_numbers(struct runs *runs, uint32_t *numbers, size_t n)
{
    while (n) {
        if (!runs->left && !next_run(runs))
            return 0;
        size_t some = runs->left < n ? (size_t)runs->left : n;
        if (!runs->is_packed) {
            for (size_t k = 0; k < some; k++)
                numbers[k] = runs->value;
        } else {
            size_t done = 0;
            while (done < some) {
                if (!runs->skipped && some - done >= 8) {
                    size_t groups = (some - done) / 8;
                    unpack(runs->bytes.at, runs->width, groups, numbers + done);
                    runs->bytes.at += groups * runs->width, done += 8 * groups;
                    continue;
                }
                uint32_t group[8];
                unpack(runs->bytes.at, runs->width, 1, group);
                while (done < some && runs->skipped < 8)
                    numbers[done++] = group[runs->skipped++];
                if (runs->skipped == 8)
                    runs->bytes.at += runs->width, runs->skipped = 0;
            }
        }
        numbers += some, n -= some, runs->left -= some;
    }
    return 1;
}

/* ---- A column ------------------------------------------------------------------------------------------------------ */

struct survey {
    uint64_t dictionary, stored, size, entries; /* where its bytes are, how many they are, compressed and not */
    uint64_t room;                              /* bytes of the largest page that is not compressed */
};

/* Whether all pages of a column are for us, and what is to be known before they are decoded. */
int hushcube_survey(const uint8_t *chunk, uint64_t length, uint64_t values, int is_optional, struct survey *found)
{
    struct bytes b = {chunk, chunk + length};
    struct page page;
    memset(found, 0, sizeof *found);
    if (!next_page(&b, &page) || page.kind != DICTIONARY)
        return 0;
    if (page.encoding != PLAIN && page.encoding != PLAIN_DICTIONARY)
        return 0;
    found->dictionary = (uint64_t)(page.at - chunk);
    found->stored = page.stored, found->size = page.size, found->entries = (uint64_t)page.values;
    while (values) {
        if (!next_page(&b, &page) || (page.kind != DATA && page.kind != DATA_2))
            return 0;
        if (page.encoding != RLE_DICTIONARY && page.encoding != PLAIN_DICTIONARY)
            return 0;
        if ((is_optional && page.level_encoding != RLE) || (uint64_t)page.values > values)
            return 0;
        if (page.size > found->room)
            found->room = page.size;
        values -= (uint64_t)page.values;
    }
    return 1;
}

/* What a page or a dictionary holds. */
int hushcube_inflate(const uint8_t *from, uint64_t stored, int codec, uint8_t *to, uint64_t size)
{
    struct bytes bytes = {from, from + stored};
    return inflate(bytes, codec, to, size);
}

struct column {
    struct bytes chunk; /* what is left of it */
    const uint32_t *lookup;
    uint8_t *room; /* for a page */
    uint64_t room_bytes;
    uint32_t entries, missing;
    uint8_t codec, is_optional, code_bytes, all_present;
    uint64_t left; /* rows of this page */
    struct runs levels, numbers;
};

uint64_t hushcube_column_bytes(void)
{
    return sizeof(struct column);
}

static int open_page(struct column *c)
{
    struct page page;
    do
        if (!next_page(&c->chunk, &page))
            return 0;
    while (page.kind == DICTIONARY || !page.values);
    if (page.size > c->room_bytes || (page.kind != DATA && page.kind != DATA_2))
        return 0;
    memcpy(c->room, page.at, page.levels);
    struct bytes stored = {page.at + page.levels, page.at + page.stored};
    if (!inflate(stored, page.is_compressed ? c->codec : NOT_COMPRESSED, c->room + page.levels, page.size - page.levels))
        return 0;
    struct bytes b = {c->room, c->room + page.size}, levels = b;
    c->left = (uint64_t)page.values;
    if (page.kind == DATA_2) {
        levels.end = levels.at + page.levels;
    } else if (c->is_optional) {
        const uint8_t *head = take(&b, 4);
        if (!head || little_endian(head, 4) > left_of(&b))
            return 0;
        levels.at = b.at, levels.end = b.at + little_endian(head, 4);
    } else {
        levels.end = levels.at;
    }
    b.at = levels.end;
    c->all_present = !c->is_optional;
    if (c->is_optional) {
        start_runs(&c->levels, levels, 1);
        if (!next_run(&c->levels))
            return 0;
        c->all_present = !c->levels.is_packed && c->levels.value == 1 && c->levels.left >= c->left;
    }
    const uint8_t *width = left_of(&b) ? take(&b, 1) : NULL; /* a page without any value may be without numbers */
    if (width && *width > 32)
        return 0;
    start_runs(&c->numbers, b, width ? *width : 0);
    return 1;
}

/* The codes of the next rows; BEYOND among them where a number is not in the dictionary. */
static int next_codes(struct column *c, uint32_t *codes, size_t rows, uint32_t *seen)
{
    uint32_t levels[BLOCK];
    size_t there = rows;
    if (!c->all_present) {
        if (!next_numbers(&c->levels, levels, rows))
            return 0;
        there = 0;
        for (size_t r = 0; r < rows; r++)
            there += levels[r] & 1;
    }
    if (!next_numbers(&c->numbers, codes, there))
        return 0;
    uint32_t most = 0;
    if (c->numbers.width < 32 && 1u << c->numbers.width <= c->entries) {
        for (size_t k = 0; k < there; k++)
            codes[k] = c->lookup[codes[k]], most |= codes[k];
    } else {
        for (size_t k = 0; k < there; k++)
            codes[k] = codes[k] < c->entries ? c->lookup[codes[k]] : BEYOND, most |= codes[k];
    }
    *seen |= most;
    if (!c->all_present)
        for (size_t r = rows; r-- > 0;)
            codes[r] = levels[r] & 1 ? codes[--there] : c->missing;
    return 1;
}

/* Begin with a column whose pages were surveyed. It is fastest if `lookup` has an entry for every number that fits into
   the bits that are stored: those that the dictionary does not have are BEYOND. */
void hushcube_open(struct column *c, const uint8_t *chunk, uint64_t length, const uint32_t *lookup, uint32_t entries,
                   uint32_t missing, uint8_t *room, uint64_t room_bytes, int codec, int is_optional, int code_bytes)
{
    memset(c, 0, sizeof *c);
    c->chunk.at = chunk, c->chunk.end = chunk + length;
    c->lookup = lookup, c->entries = entries, c->missing = missing;
    c->room = room, c->room_bytes = room_bytes;
    c->codec = (uint8_t)codec, c->is_optional = (uint8_t)is_optional, c->code_bytes = (uint8_t)code_bytes;
}

#define STORE(CODE)                                                                                                    \
    for (size_t k = 0; k < some; k++)                                                                                  \
    ((CODE *)to)[k] = (CODE)codes[k]

/* The codes of the next rows of a column, of one, two or four bytes each; 0 where its pages make no sense. */
int hushcube_codes(struct column *c, uint64_t rows, uint8_t *to)
{
    uint32_t codes[BLOCK], seen = 0;
    while (rows) {
        if (!c->left && !open_page(c))
            return 0;
        size_t some = rows < BLOCK ? (size_t)rows : BLOCK;
        some = c->left < some ? (size_t)c->left : some;
        if (!next_codes(c, codes, some, &seen))
            return 0;
        switch (c->code_bytes) {
        case 1: STORE(uint8_t); break;
        case 2: STORE(uint16_t); break;
        default: STORE(uint32_t);
        }
        to += some * c->code_bytes, rows -= some, c->left -= some;
    }
    return !(seen & BEYOND);
}
