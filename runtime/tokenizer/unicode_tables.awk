# Makes unicode_tables.cpp from the Unicode Character Database (Debian: package unicode-data):
#   U=/usr/share/unicode; awk -f unicode_tables.awk $U/UnicodeData.txt \
#     $U/DerivedNormalizationProps.txt | clang-format --style=file > unicode_tables.cpp

function hex(text,    value, i) {
  value = 0
  for (i = 1; i <= length(text); i++)
    value = value * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
  return value
}

# The full decomposition of `code` as a text of hexadecimal numbers.
function expand(code, compat,    parts, count, i, out, map) {
  map = (code in canon) ? canon[code] : (compat && (code in compat_map)) ? compat_map[code] : ""
  if (map == "") return sprintf("%X", code)
  count = split(map, parts, " ")
  out = ""
  for (i = 1; i <= count; i++) out = out (i > 1 ? " " : "") expand(hex(parts[i]), compat)
  return out
}

function put_pool(text,    parts, count, i) {
  if (!(text in pool_at)) {
    pool_at[text] = pool_size
    count = split(text, parts, " ")
    for (i = 1; i <= count; i++) { pool = pool "0x" parts[i] ","; pool_size++ }
    pool = pool "\n"
  }
  return pool_at[text]
}

function class_of(category) {
  if (category == "Mn") return "mark_nonspacing"
  if (category ~ /^M/) return "mark"
  if (category ~ /^L/) return "letter"
  if (category == "No") return "number_other"
  if (category ~ /^N/) return "number"
  if (category == "Pc") return "connector"
  if (category ~ /^P/) return "punctuation"
  if (category ~ /^C/) return "other"
  return ""
}

function end_category() { if (cat != "") cats = cats sprintf("{0x%X,0x%X,category::%s},\n", cat_first, cat_last, cat) }
function end_combining() { if (ccc) combs = combs sprintf("{0x%X,0x%X,%d},\n", ccc_first, ccc_last, ccc) }

FNR == NR {
  n = split($0, field, ";")
  code = hex(field[1])
  codes[++total] = code
  is = class_of(field[3])
  # "..., Last>" closes a range that the line before opened.
  if (is != cat || (code != cat_last + 1 && field[2] !~ /Last>$/)) { end_category(); cat = is; cat_first = code }
  cat_last = code
  if (field[4] + 0 != ccc || code != ccc_last + 1) { end_combining(); ccc = field[4] + 0; ccc_first = code }
  ccc_last = code
  if (field[6] ~ /^</) { map = field[6]; sub(/^<[^>]*> /, "", map); compat_map[code] = map }
  else if (field[6] != "") canon[code] = field[6]
  if (field[14] != "") lowers = lowers sprintf("{0x%X,0x%s},\n", code, field[14])
  next
}

/Full_Composition_Exclusion/ && !/^#/ {
  split($1, ends, "[.][.]")
  first = hex(ends[1]); last = (ends[2] != "") ? hex(ends[2]) : first
  for (c = first; c <= last; c++) excluded[c] = 1
}

END {
  end_category(); end_combining()
  for (i = 1; i <= total; i++) {
    code = codes[i]
    if (code in canon) {
      text = expand(code, 0)
      canonical = canonical sprintf("{0x%X,%d,%d,false},\n", code, put_pool(text), split(text, unused, " "))
      if (!(code in excluded) && split(canon[code], two, " ") == 2)
        print sprintf("%06X%06X {0x%s,0x%s,0x%X},", hex(two[1]), hex(two[2]), two[1], two[2], code) | "sort > unicode_pairs.tmp"
    }
    text = expand(code, 1)
    if (((code in canon) || (code in compat_map)) && text != expand(code, 0))
      compatible = compatible sprintf("{0x%X,%d,%d,true},\n", code, put_pool(text), split(text, unused, " "))
  }
  close("sort > unicode_pairs.tmp")
  while ((getline line < "unicode_pairs.tmp") > 0) { sub(/^[0-9A-F]+ /, "", line); pairs = pairs line "\n" }
  system("rm unicode_pairs.tmp")
  print "// Made by unicode_tables.awk from the Unicode Character Database; do not edit.\n"
  print "#include \"runtime/tokenizer/unicode_tables.hpp\"\n\nnamespace lethe::unicode {\nnamespace {\n"
  print "constexpr decomposition canonical_rows[] = {\n" canonical "};\n"
  print "constexpr decomposition compatible_rows[] = {\n" compatible "};\n"
  print "constexpr uint32_t decomposed_rows[] = {\n" pool "};\n"
  print "constexpr pair_composition composition_rows[] = {\n" pairs "};\n"
  print "constexpr combining_range combining_rows[] = {\n" combs "};\n"
  print "constexpr category_range category_rows[] = {\n" cats "};\n"
  print "constexpr lower_case lower_rows[] = {\n" lowers "};\n"
  print "}  // namespace\n"
  print "const std::span<const decomposition> canonical = canonical_rows;"
  print "const std::span<const decomposition> compatible = compatible_rows;"
  print "const std::span<const uint32_t> decomposed = decomposed_rows;"
  print "const std::span<const pair_composition> compositions = composition_rows;"
  print "const std::span<const combining_range> combining = combining_rows;"
  print "const std::span<const category_range> categories = category_rows;"
  print "const std::span<const lower_case> lower_cases = lower_rows;\n"
  print "}  // namespace lethe::unicode"
}
