# What a program says of its version, wherever that stands: behind a notice, after an empty line, on
# stderr, by an option of its own. Sourced by builds, by jobs and where toolchains are detected.

_seatrial_notice='(warning|error|remark|notice|note|info)[ ]*(#[0-9]+|\([a-z]\))?[ ]*:|not recognized|unrecognized'
_seatrial_notice+='|not supported|deprecated|(unknown|invalid|illegal|bad) (command|option|argument|switch|flag)'
_seatrial_notice+='|no input file|^usage|licen[cs]e|copyright|^configured with'
# Times: of a log line, of a clock, of date(1). They are no part of a version.
_seatrial_clock='[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?'
_seatrial_times=(
  "(^|[^[:alnum:]])([0-9]{4}-[0-9]{2}-[0-9]{2}[T ]$_seatrial_clock(Z|[ ]?[+-][0-9]{2}:?[0-9]{2})?)"
  "(^|[^[:alnum:]])((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +[A-Z][a-z]{2} +[0-9]{1,2},?( +[0-9]{4})?( +$_seatrial_clock)?( [AP]M)?( [A-Z]{3,5})?( +[0-9]{4})?)"
  "(^|[^[:alnum:]:.])($_seatrial_clock)"
  '(^|[^[:alnum:]._-])(1[0-9]{9}([0-9]{3})?(\.[0-9]+)?)($|[^[:alnum:]._-])'
)

seatrial_without_times() {  # text of one line: sets _line
  local _pattern _time
  _line=$1
  for _pattern in "${_seatrial_times[@]}"; do
    while [[ $_line =~ $_pattern ]]; do
      _time=${BASH_REMATCH[2]}
      _line=${_line/"$_time"/}
    done
  done
}

# Sets _line to the lines of a text that have a version, "; " between them, and _whole to the text
# without times. Fails where none has a version.
seatrial_version_lines() {  # text
  local _each _word _plain _named='' _dotted='' IFS=$' \t\n'
  local -a _words
  _whole=
  while IFS= read -r _each; do
    seatrial_without_times "${_each//[[:cntrl:]]/ }"
    read -r -a _words <<< "$_line"
    _line="${_words[*]}"
    [ -n "$_line" ] || continue
    _whole+="$_line"$'\n'
    [[ ${_line,,} =~ $_seatrial_notice ]] && continue
    _plain=
    for _word in "${_words[@]}"; do
      [[ $_word == *?/* || $_word == /* ]] && [[ $_word != *+* ]] || _plain+=" $_word"
    done
    if [[ $_plain =~ [0-9]\.[0-9] ]]; then
      _dotted+="${_dotted:+; }$_line"
    elif [[ ${_plain,,} =~ (version|release)[:\ ]*[0-9] ]]; then
      _named+="${_named:+; }$_line"
    fi
  done <<< "${1:0:16384}"
  _line=${_dotted:-$_named}
  [ -n "$_line" ]
}

# Sets _line to what a program says of its version, and _whole to all that it said with it, without
# times; both are empty where it does not say it, or does not end. Fails then.
seatrial_said_version() {  # program with its options, options to ask it by (default: the usual ones)
  local _program=$1 _option _text
  shift
  [ $# -gt 0 ] || set -- --version -V -qversion -v
  for _option; do
    _text=$(LC_ALL=C exec timeout 10 $_program $_option 2> /dev/null < /dev/null)
    case $? in
      0) ;;
      124) break ;;
      *) continue ;;
    esac
    if [[ $_text == HYDRA* && $_text == *Version:* ]]; then
      _text=${_text#*Version:}
      _text="HYDRA ${_text%%$'\n'*}"
    fi
    seatrial_version_lines "$_text" && return
    _text=$(LC_ALL=C exec timeout 10 $_program $_option 2>&1 < /dev/null) || continue
    seatrial_version_lines "$_text" && return
  done
  _line= _whole=
  return 1
}
