# Finds words that the pages do not use:  awk -f banned-words.awk banned-words PAGE…
# Prints "PAGE, line N: 'WORDS': write INSTEAD" for each. Case does not count, and words may continue on the next line. Blocks of code,
# code in a line, and what is generated between <!-- name --> and <!-- /name --> do not count: those are the program's words.

FNR == 1 { check(); page = FILENAME; count = code = generated = 0 }

NR == FNR {
  if (/^#/ || /^$/) next
  if (split($0, field, "\t") != 2 || field[1] == "" || field[2] == "") {
    print FILENAME ", line " FNR ": expected words, a tab, and what to write instead"
    next
  }
  words[++phrases] = tolower(field[1])
  instead[phrases] = field[2]
  next
}

{
  text = $0
  if (text ~ /^```/) { code = !code; text = "" }
  if (text ~ /^<!-- [^\/]/) generated = 1
  if (text ~ /^<!-- \//) generated = 0
  if (code || generated || text ~ /^    /) text = ""
  gsub(/`[^`]*`/, "`", text)
  gsub(/[ \t]+/, " ", text)
  sub(/^ /, "", text)
  sub(/ $/, "", text)
  line[++count] = tolower(text)
}

END { check() }

function check(   i, p, both, start, at, before, after) {
  for (i = 1; i <= count; ++i) {
    both = line[i + 1] == "" || i == count ? line[i] : line[i] " " line[i + 1]
    for (p = 1; p <= phrases; ++p) {
      for (start = 1; (at = index(substr(both, start), words[p])) > 0; start += at) {
        if (start + at - 1 > length(line[i])) break # the next line's own
        before = start + at == 2 ? " " : substr(both, start + at - 2, 1)
        after = substr(both, start + at - 1 + length(words[p]), 1)
        if (before !~ /[[:alnum:]_-]/ && after !~ /[[:alnum:]_-]/)
          print page ", line " i ": '" words[p] "': write " instead[p]
      }
    }
  }
}
