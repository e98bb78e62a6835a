# Leaves of C++ sources what is between double quotes, each on its line, for the words of banned-words:
#   awk -v to=DIRECTORY -f literals.awk FILE…
# writes DIRECTORY/FILE. #include lines and comments do not count. A literal that goes on in the next line is joined there.

FNR == 1 { if (out != "") close(out); out = to "/" FILENAME }

{
  text = ""
  rest = $0
  if (rest ~ /^#/) rest = ""
  while (match(rest, /\/\/|"([^"\\]|\\.)*"/)) {
    if (substr(rest, RSTART, 2) == "//") break
    text = text " " substr(rest, RSTART + 1, RLENGTH - 2)
    rest = substr(rest, RSTART + RLENGTH)
  }
  gsub(/\\[nt]/, " ", text)
  sub(/^ +/, "", text)
  print text > out
}
