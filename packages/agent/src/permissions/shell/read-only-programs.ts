import { awkOnlyPrints } from './awk-program.ts'
import { hasOption, valuesOf, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { sedOnlyPrints } from './sed-script.ts'
import { startOf, textOf, textWithNumbers } from './word.ts'

/**
 * Programs that only read if they are called in these ways. Whoever adds one makes sure, for every option that is listed, that
 * it writes nothing, starts nothing and connects nowhere; what has other options than these on another system is listed with
 * the options that all of them have. `git`, `npm`, `find`, `xargs` and the commands of the shell itself have files of their own.
 */
const programs: Record<string, ProgramRule> = {
  // Files
  cat: { options: '', everyOptionReads: true, reads: 'contents', prints: { input: true } },
  tac: { options: '-s:', everyOptionReads: true, reads: 'contents', prints: { input: true } },
  nl: { options: '-b: -w: -s: -n: -v:', everyOptionReads: true, reads: 'contents' },
  head: { options: '-n: -c: -#', everyOptionReads: true, reads: 'contents', prints: { input: true } },
  tail: { options: '-n: -c: -#', everyOptionReads: true, reads: 'contents', prints: { input: true } },
  wc: { options: '', everyOptionReads: true, reads: 'contents' },
  ls: { options: '-I: -w: -T:', everyOptionReads: true, prints: { names: true } },
  stat: { options: '', everyOptionReads: true },
  du: { options: '', everyOptionReads: true },
  df: { options: '', everyOptionReads: true },
  basename: { options: '', everyOptionReads: true },
  dirname: { options: '', everyOptionReads: true },
  realpath: { options: '', everyOptionReads: true },
  readlink: { options: '', everyOptionReads: true },
  namei: { options: '', everyOptionReads: true },
  file: {
    options: '-b -i -I -L -h -k -N -0 -r -F: --brief --mime --mime-type --mime-encoding --dereference --no-dereference',
  },
  tree: {
    options: `-a -d -f -i -l -x -p -s -h -u -g -D -t -r -C -n -J -F -q -N -L: -P: -I: --noreport --dirsfirst --gitignore --prune --du
      --filelimit= --charset=`,
  },
  cksum: { options: '', everyOptionReads: true },
  md5sum: { options: '', everyOptionReads: true },
  sha1sum: { options: '', everyOptionReads: true },
  sha256sum: { options: '', everyOptionReads: true },
  sha512sum: { options: '', everyOptionReads: true },
  shasum: { options: '-a: -b -t -c --algorithm= --check' },

  // Text
  grep: {
    options: `-e: -f@ -m: -A: -B: -C: -d: -D: -# --regexp= --file@ --max-count= --after-context= --before-context= --context= --include=
      --exclude= --exclude-dir= --exclude-from@ --color? --label= --binary-files=`,
    everyOptionReads: true,
    reads: 'contents',
    text: { count: 1, unless: '-e -f --regexp --file' },
    recursive: '-r -R --recursive --dereference-recursive',
    prints: { names: '-l -L --files-with-matches --files-without-match', input: true },
  },
  rg: {
    // `--pre`, `--hostname-bin` and `-z` start other programs.
    options: `-e: -f@ -s -E: -F -i -v -x -m: -U -P -S -a -j: -w -L -g: -. -d: -t: -T: -u -A: -B: -b -C: -n -N -M: -0 -o -p -q -r: -H -I -c -l
      -V --regexp= --file@ --case-sensitive --crlf --encoding= --engine= --fixed-strings --ignore-case --invert-match --line-regexp
      --max-count= --mmap --no-mmap --multiline --multiline-dotall --no-unicode --null-data --pcre2 --smart-case --text --threads=
      --word-regexp --binary --follow --glob= --glob-case-insensitive --hidden --no-hidden --iglob= --ignore-file@ --max-depth=
      --max-filesize= --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-parent
      --no-ignore-vcs --no-require-git --one-file-system --type= --type-not= --type-add= --type-clear= --unrestricted --after-context=
      --before-context= --byte-offset --color= --colors= --column --context= --context-separator= --heading --no-heading
      --include-zero --line-buffered --line-number --no-line-number --max-columns= --max-columns-preview --null --only-matching
      --path-separator= --passthru --pretty --quiet --replace= --sort= --sortr= --trim --vimgrep --with-filename --no-filename --count
      --count-matches --files-with-matches --files-without-match --json --no-messages --stats --files --no-config --type-list
      --version`,
    reads: 'contents',
    text: { count: 1, unless: '-e -f --regexp --file --files --type-list' },
    recursive: true,
    prints: { names: '-l --files --files-with-matches --files-without-match' },
  },
  fd: {
    // `-x`, `-X` and `-l` start other programs.
    options: `-H -I -u -s -i -g -F -a -L -p -0 -1 -q -e: -t: -d: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs --glob --fixed-strings
      --case-sensitive --ignore-case --absolute-path --follow --full-path --print0 --quiet --extension= --type= --max-depth= --min-depth=
      --exact-depth= --exclude= --size= --changed-within= --changed-before= --max-results= --color= --version`,
    text: { count: 1 },
    prints: { names: true },
  },
  sed: {
    options:
      '-n -e: -E -r -s -z -u --quiet --silent --expression= --regexp-extended --separate --null-data --unbuffered --version',
    reads: 'contents',
    text: { count: 1, unless: '-e --expression' },
    check: (call) => {
      const given = valuesOf(call, '-e --expression')
      const scripts = given.length > 0 ? given : call.operands.slice(0, 1)
      const isHarmless = scripts.map(textWithNumbers).every((script) => script !== undefined && sedOnlyPrints(script))
      return isHarmless ? undefined : 'the script may do more than print'
    },
  },
  awk: {
    options: '-F: -v: --field-separator= --assign= --version',
    reads: 'contents',
    text: { count: 1 },
    check: (call) => {
      const [program, ...files] = call.operands
      const text = program && textOf(program)
      if (text === undefined) return hasOption(call, '--version') ? undefined : 'the program is not known'
      if (!awkOnlyPrints(text)) return 'the program may do more than print'
      return files.some((file) => /^(?:$|\/inet)/.test(startOf(file)))
        ? 'one of the files may be a connection'
        : undefined
    },
  },
  sort: {
    options: `-b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k: -t: -S: --ignore-leading-blanks --dictionary-order --ignore-case
      --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort --reverse --version-sort --sort= --check?
      --merge --stable --unique --zero-terminated --key= --field-separator= --parallel=`,
    reads: 'contents',
    prints: { input: true },
  },
  uniq: {
    // A second operand is written to.
    options: `-c -d -D -u -i -z -f: -s: -w: --count --repeated --unique --ignore-case --all-repeated? --group? --skip-fields= --skip-chars=
      --check-chars= --zero-terminated`,
    reads: 'contents',
    maxOperands: 1,
    prints: { input: true },
  },
  cut: { options: '-b: -c: -d: -f:', everyOptionReads: true, reads: 'contents' },
  tr: { options: '', everyOptionReads: true },
  paste: { options: '-d:', everyOptionReads: true, reads: 'contents' },
  join: { options: '-a: -e: -j: -o: -t: -v: -1: -2:', everyOptionReads: true, reads: 'contents' },
  comm: { options: '', everyOptionReads: true, reads: 'contents' },
  fold: { options: '-w:', everyOptionReads: true, reads: 'contents' },
  fmt: { options: '-w:', everyOptionReads: true, reads: 'contents' },
  expand: { options: '-t:', everyOptionReads: true, reads: 'contents' },
  unexpand: { options: '-t:', everyOptionReads: true, reads: 'contents' },
  column: { options: '-t -s: -o: -c: -N: -x -e -n: -J -R: -L', reads: 'contents' },
  rev: { options: '', everyOptionReads: true, reads: 'contents' },
  cmp: { options: '-i: -n:', everyOptionReads: true, reads: 'contents' },
  diff: {
    // `-l` starts `pr`.
    options: `-u -U: -c -C: -q -s -y -r -N -a -b -B -w -i -E -Z -d -p -t -T -W: -x: -X@ -I: -L: --color? --brief --unified? --context?
      --side-by-side --recursive --new-file --text --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-case
      --ignore-trailing-space --ignore-matching-lines= --strip-trailing-cr --suppress-common-lines --width= --exclude= --label= --minimal
      --normal --report-identical-files --show-c-function --no-dereference`,
    reads: 'contents',
    recursive: '-r --recursive',
  },
  jq: {
    options: `-f: --from-file= --indent= -L: -r -c -e -s -n -S -C -M -a -R -j --raw-output --compact-output --exit-status --slurp
      --null-input --sort-keys --raw-input --join-output --tab --args --jsonargs --stream --seq`,
    everyOptionReads: true,
    reads: 'contents',
    text: { count: 1, unless: '-f --from-file' },
    check: jqProblem,
  },
  iconv: { options: '-f: -t: -c -s -l --from-code= --to-code= --list', reads: 'contents' },
  strings: { options: '-n: -t: -e: -a', everyOptionReads: true, reads: 'contents' },
  base64: { options: '-d -D -w: --decode --wrap=', reads: 'contents', maxOperands: 1 },
  od: { options: '-A: -j: -N: -t:', everyOptionReads: true, reads: 'contents' },
  hexdump: { options: '-n: -s: -e:', everyOptionReads: true, reads: 'contents' },
  // A second operand is written to, and behind the first one an option is an operand.
  xxd: { options: '-a -b -c: -e -g: -i -l: -p -r -s: -u', reads: 'contents', maxOperands: 1, stopsAtOperand: true },
  seq: { options: '', everyOptionReads: true },
  expr: { options: '', everyOptionReads: true },
  numfmt: { options: '', everyOptionReads: true },
  shuf: {
    options: '-e -i: -n: -r -z --echo --input-range= --head-count= --repeat --zero-terminated',
    reads: 'contents',
  },
  tsort: { options: '', everyOptionReads: true, reads: 'contents' },

  // Archives
  tar: {
    startsWithLetters: /^[tvzjJ]+f$/,
    options: '-t -v -z -j -J -f@ --list --verbose --file@ --gzip --bzip2 --xz',
    check: (call) => {
      const files = valuesOf(call, '-f --file').map(textOf)
      // A colon in its name means another machine.
      const isLocal = files.length === 1 && files.every((file) => file !== undefined && !file.includes(':'))
      return hasOption(call, '-t --list') && isLocal ? undefined : 'it may do more than list'
    },
  },
  unzip: { options: '-l', check: (call) => (hasOption(call, '-l') ? undefined : 'it may do more than list') },
  zipinfo: { options: '-1 -s -m -l -h -t' },

  // The machine
  date: {
    options: '-u -R -I? -d: -r@ --utc --universal --rfc-email --iso-8601? --rfc-3339= --date= --reference@',
    // Without a plus it is the time that is set.
    check: ({ operands }) =>
      operands.every((word) => startOf(word).startsWith('+')) ? undefined : 'it may set the clock',
  },
  cal: { options: '-1 -3 -y -m -j -s', everyOptionReads: true },
  sleep: { options: '', everyOptionReads: true },
  whoami: { options: '', everyOptionReads: true },
  id: { options: '', everyOptionReads: true },
  groups: { options: '', everyOptionReads: true },
  users: { options: '', everyOptionReads: true },
  who: { options: '', everyOptionReads: true },
  tty: { options: '', everyOptionReads: true },
  hostname: { options: '-s --short', maxOperands: 0 },
  uname: { options: '', everyOptionReads: true },
  // Elsewhere it starts the program that it is given.
  arch: { options: '', maxOperands: 0 },
  nproc: { options: '', everyOptionReads: true },
  uptime: { options: '', everyOptionReads: true },
  free: { options: '', everyOptionReads: true },
  vmstat: { options: '', everyOptionReads: true },
  lscpu: { options: '', everyOptionReads: true },
  lsblk: { options: '', everyOptionReads: true },
  findmnt: { options: '', everyOptionReads: true },
  locale: { options: '', everyOptionReads: true },
  getconf: { options: '-a' },
  getent: {
    options: '',
    check: ({ operands }) => {
      const database = operands[0] && textOf(operands[0])
      return /^(?:passwd|group|services|protocols)$/.test(database ?? '') ? undefined : 'it may ask the network'
    },
  },
  env: { options: '-0 --null', maxOperands: 0 },
  printenv: { options: '-0 --null' },
  ps: {
    options: '-e -A -a -f -F -l -w -H -L -T -o: -p: -u: -C: --sort= --no-headers --forest --pid= --ppid= --user=',
    // Among the letters without a dash, `e` shows what is in the environment of others.
    check: (call) => {
      const isPlain = call.operands.every((word) => /^(?:[auxwfjl]+|[0-9]+)$/.test(textOf(word) ?? ' '))
      const columns = valuesOf(call, '-o').every(
        (word) => /^[a-z%=,]+$/.test(textOf(word) ?? '') && !textOf(word)?.includes('env'),
      )
      return isPlain && columns ? undefined : 'it may show the environment of other programs'
    },
  },
  pgrep: {
    options: '-a -f -l -x -n -o -c -u: -P: --list-full --list-name --full --exact --count --newest --oldest --parent=',
  },
  // An operand may be the name of a host, which is looked up.
  ss: {
    options: '-t -u -l -n -p -a -4 -6 -x -s -o -m -i --tcp --udp --listening --numeric --processes --all --summary',
    maxOperands: 0,
  },
  which: { options: '-a' },
  whereis: { options: '-b -m -s' },
  dpkg: {
    options: '-l -L -s -S --list --listfiles --status --search',
    check: needsOption('-l -L -s -S --list --listfiles --status --search'),
  },
  'dpkg-query': {
    options: '-l -L -s -S -W -f: --list --listfiles --status --search --show --showformat=',
    check: needsOption('-l -L -s -S -W --list --listfiles --status --search --show'),
  },
}

/** A program may begin by reading others, whose names stand in it; one that is not known may do so too. */
function jqProblem(call: ParsedCall): string | undefined {
  const [first] = call.operands
  const isKnown = first === undefined || first.pieces.length === 0 || startOf(first) !== ''
  const mayImport = call.operands.some((word) => /^\s*(?:#|(?:module|import|include)\b)/.test(startOf(word)))
  return isKnown && !mayImport && !hasOption(call, '-f --from-file') ? undefined : 'its program may read other files'
}

function needsOption(names: string): (call: ParsedCall) => string | undefined {
  return (call) => (hasOption(call, names) ? undefined : 'it may do more than list')
}

/** Programs that are asked for nothing but their version. Tools that a file in the working folder redirects are not among them. */
const versions: Record<string, string> = {
  node: '-v --version',
  deno: '-V --version',
  bun: '-v --version',
  python: '-V --version',
  python3: '-V --version',
  perl: '-v --version',
  ruby: '-v --version',
  php: '-v --version',
  gcc: '--version',
  'g++': '--version',
  clang: '--version',
  make: '-v --version',
  cmake: '--version',
  docker: '-v --version',
  curl: '-V --version',
  wget: '-V --version',
  bash: '--version',
  zsh: '--version',
  sqlite3: '--version',
  tmux: '-V',
  ssh: '-V',
}

const aliases: Record<string, string> = {
  egrep: 'grep',
  fgrep: 'grep',
  gawk: 'awk',
  mawk: 'awk',
  nawk: 'awk',
  fdfind: 'fd',
}

export const readOnlyPrograms: ReadonlyMap<string, ProgramRule> = new Map([
  ...Object.entries(programs),
  ...Object.entries(aliases).flatMap(([name, of]) => (programs[of] ? [[name, programs[of]] as const] : [])),
  ...Object.entries(versions).map(
    ([name, options]) => [name, { options, maxOperands: 0, check: needsOption(options) }] as const,
  ),
])
