import { hasOnlyOptions, hasOption, valuesOf, type ParsedCall, type ProgramRule } from './program-rule.ts'
import { sedOnlyPrints } from './sed-script.ts'
import { startOf, textOf, textWithNumbers } from '../words/word.ts'

const sums: ProgramRule = {
  // `-c` reads the files that a file names.
  options: '-b -t -z --binary --text --tag --zero --version',
  reads: 'contents',
}

/**
 * Programs that only read if they are called in these ways. Before adding one, verify for every listed option that it
 * writes nothing, starts nothing and connects nowhere. If the options differ between systems, list only the common
 * ones. `git`, `npm`, `find`, `xargs` and the shell builtins have their own files.
 */
const programs: Record<string, ProgramRule> = {
  // Files
  cat: {
    options: `-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs
      --show-nonprinting --version`,
    reads: 'contents',
    prints: { input: '' },
  },
  tac: { options: '-b -r -s: --before --regex --separator= --version', reads: 'contents', prints: { input: '' } },
  nl: {
    options: `-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering= --section-delimiter= --footer-numbering= --header-numbering=
      --line-increment= --join-blank-lines= --number-format= --no-renumber --number-separator= --starting-line-number= --number-width=
      --version`,
    reads: 'contents',
  },
  head: {
    options: '-n: -c: -q -v -z -# --lines= --bytes= --quiet --silent --verbose --zero-terminated --version',
    reads: 'contents',
    prints: { input: '-n -# --lines -q --quiet' },
  },
  tail: {
    options: `-n: -c: -f -F -q -v -z -s: -# --lines= --bytes= --follow? --pid= --retry --sleep-interval= --max-unchanged-stats= --quiet
      --silent --verbose --zero-terminated --version`,
    reads: 'contents',
    prints: { input: '-n -# --lines -q --quiet' },
  },
  // `--files0-from` reads the files that a file names.
  wc: { options: '-c -m -l -L -w --bytes --chars --lines --max-line-length --words --version', reads: 'contents' },
  ls: {
    options: `-a -A -b -B -c -C -d -D -f -F -g -G -h -H -i -I: -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t -T: -u -U -v -w: -x -X -Z -1 --all
      --almost-all --author --escape --block-size= --ignore-backups --color? --directory --classify? --file-type --format= --full-time
      --group-directories-first --no-group --human-readable --si --dereference-command-line --hide= --hyperlink? --indicator-style=
      --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name
      --quoting-style= --reverse --recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero --version`,
    anyWord: true,
    // Other options decorate the names, or add `..` to them.
    prints: {
      names: {
        isFlat: true,
        with: '-1 -A -B -c -I -r -S -t -u -U -v -X --almost-all --ignore-backups --ignore --hide --reverse --sort',
      },
    },
  },
  stat: {
    options: '-L -f -c: -t --dereference --file-system --cached= --format= --printf= --terse --version',
    anyWord: true,
  },
  // `--files0-from` and `-X` read a file, `-L` follows links.
  du: {
    options: `-0 -a -B: -b -c -d: -h -k -l -m -P -S -s -t: -x --null --all --apparent-size --block-size= --bytes --total --max-depth=
      --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold= --time? --time-style=
      --exclude= --one-file-system --version`,
  },
  df: {
    options: `-a -B: -h -H -i -k -l -m -P -t: -T -x: --all --block-size= --human-readable --si --inodes --local --no-sync --output?
      --portability --total --type= --print-type --exclude-type= --version`,
  },
  basename: { options: '-a -s: -z --multiple --suffix= --zero --version', anyWord: true },
  dirname: { options: '-z --zero --version', anyWord: true },
  realpath: {
    options: `-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to=
      --relative-base= --strip --no-symlinks --zero --version`,
    anyWord: true,
  },
  readlink: {
    options: `-f -e -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent
      --verbose --zero --version`,
    anyWord: true,
  },
  namei: {
    options: '-x -m -o -l -n -v --mountpoints --modes --owners --long --nosymlinks --vertical --version',
  },
  // `-f` and `-m` read a file, `-z` starts programs, `-p` sets times, `-C` writes.
  file: {
    options: '-b -i -I -L -h -k -N -0 -r -F: --brief --mime --mime-type --mime-encoding --dereference --no-dereference',
  },
  // `--fromfile` reads a file, `-o` writes one, `-l` follows links.
  tree: {
    options: `-a -d -f -i -x -p -s -h -u -g -D -t -r -C -n -J -F -q -N -L: -P: -I: --noreport --dirsfirst --gitignore --prune --du
      --filelimit= --charset=`,
  },
  // `-c` reads the files that a file names.
  cksum: {
    options: '-a: -l: -z --algorithm= --length= --tag --untagged --zero --version',
    reads: 'contents',
  },
  md5sum: sums,
  sha1sum: sums,
  sha256sum: sums,
  sha512sum: sums,
  shasum: { options: '-a: -b -t --algorithm= --binary --text --tag', reads: 'contents' },

  // Text
  grep: {
    // `-d recurse` would make it recursive.
    options: `-E -F -G -P -e: -f@ -i -y -w -x -z -s -v -V -m: -b -n -H -h -o -q -a -I -D: -r -R -L -l -c -T -Z -B: -A: -C: -U -u -#
      --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp= --file@ --ignore-case --no-ignore-case --word-regexp
      --line-regexp --null-data --no-messages --invert-match --version --max-count= --byte-offset --line-number --line-buffered
      --with-filename --no-filename --label= --only-matching --quiet --silent --binary-files= --text --devices= --recursive
      --dereference-recursive --include= --exclude= --exclude-from@ --exclude-dir= --files-without-match --files-with-matches --count
      --initial-tab --null --before-context= --after-context= --context= --group-separator= --no-group-separator --color? --colour?
      --binary`,
    reads: 'contents',
    text: { count: 1, unless: '-e -f --regexp --file' },
    recursive: '-r -R --recursive --dereference-recursive',
    selects: '--include',
    followsLinks: '-R --dereference-recursive',
    prints: {
      names: {
        needs: '-l -L --files-with-matches --files-without-match',
        with: `-E -F -G -P -e -i -w -x -s -v -m -a -I -r -l -L --extended-regexp --fixed-strings --regexp --ignore-case --word-regexp
          --invert-match --recursive --include --exclude --exclude-dir --files-with-matches --files-without-match --no-messages`,
      },
      input:
        '-E -F -G -P -e -i -w -x -s -v -m -a --extended-regexp --fixed-strings --regexp --ignore-case --invert-match',
    },
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
    selects: '-g --glob --iglob --type-add',
    followsLinks: '-L --follow',
    prints: {
      names: {
        needs: '-l --files --files-with-matches --files-without-match',
        with: `-e -s -F -i -v -x -m -S -w -g -. -d -t -T -u -l --regexp --case-sensitive --fixed-strings --ignore-case --smart-case
          --word-regexp --glob --iglob --hidden --max-depth --no-ignore --no-ignore-vcs --type --type-not --files
          --files-with-matches --files-without-match --sort --sortr --no-messages`,
      },
    },
  },
  fd: {
    // `-x`, `-X` and `-l` start other programs.
    options: `-H -I -u -s -i -g -F -a -L -p -0 -1 -q -e: -t: -d: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs --glob --fixed-strings
      --case-sensitive --ignore-case --absolute-path --follow --full-path --print0 --quiet --extension= --type= --max-depth= --min-depth=
      --exact-depth= --exclude= --size= --changed-within= --changed-before= --max-results= --color= --version`,
    text: { count: 1 },
    prints: {
      names: {
        with: `-H -I -u -s -i -g -F -p -e -t -d -E -S --hidden --no-ignore --no-ignore-vcs --glob --fixed-strings --case-sensitive
          --ignore-case --full-path --extension --type --max-depth --min-depth --exact-depth --exclude --size`,
      },
    },
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
      if (text === undefined) return hasOption(call, '--version') ? undefined : 'the program is unknown'
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
    prints: {
      input: '-b -d -f -g -h -i -M -n -R -r -V -s -u -k -t --numeric-sort --random-sort --reverse --unique --key',
    },
  },
  uniq: {
    // It writes to a second operand.
    options: `-c -d -D -u -i -z -f: -s: -w: --count --repeated --unique --ignore-case --all-repeated? --group? --skip-fields= --skip-chars=
      --check-chars= --zero-terminated`,
    reads: 'contents',
    maxOperands: 1,
    prints: { input: '-d -u -i --repeated --unique --ignore-case' },
  },
  cut: {
    options: `-b: -c: -d: -f: -n -s -z --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter=
      --zero-terminated --version`,
    reads: 'contents',
  },
  tr: { options: '-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1 --version', anyWord: true },
  paste: { options: '-d: -s -z --delimiters= --serial --zero-terminated --version', reads: 'contents' },
  join: {
    options:
      '-a: -e: -i -j: -o: -t: -v: -1: -2: -z --ignore-case --check-order --nocheck-order --header --zero-terminated --version',
    reads: 'contents',
  },
  comm: {
    options: '-1 -2 -3 -z --check-order --nocheck-order --output-delimiter= --total --zero-terminated --version',
    reads: 'contents',
  },
  fold: { options: '-b -s -w: --bytes --spaces --width= --version', reads: 'contents' },
  fmt: {
    options: `-c -p: -s -t -u -w: -g: -# --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing --width= --goal=
      --version`,
    reads: 'contents',
  },
  expand: { options: '-i -t: -# --initial --tabs= --version', reads: 'contents' },
  unexpand: { options: '-a -t: --all --first-only --tabs= --version', reads: 'contents' },
  column: {
    options: `-t -s: -o: -c: -N: -x -e -n: -J -R: -L --table --separator= --output-separator= --output-width= --table-columns=
      --fillrows --json --version`,
    reads: 'contents',
  },
  rev: { options: '-V --version', reads: 'contents' },
  cmp: {
    options: '-b -i: -l -n: -s -v --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent --version',
    reads: 'contents',
  },
  diff: {
    // `-l` starts `pr`.
    options: `-u -U: -c -C: -q -s -y -r -N -a -b -B -w -i -E -Z -d -p -t -T -W: -x: -X@ -I: -L: --color? --brief --unified? --context?
      --side-by-side --recursive --new-file --text --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-case
      --ignore-trailing-space --ignore-matching-lines= --strip-trailing-cr --suppress-common-lines --width= --exclude= --label= --minimal
      --normal --report-identical-files --show-c-function --no-dereference`,
    reads: 'contents',
    // It compares folders also without `-r`, and follows the links in them.
    recursive: true,
    needsOperands: true,
    followsLinks: true,
  },
  jq: {
    // `-f`, `-L`, `--rawfile`, `--slurpfile` and `--from-file` read other files.
    options: `-r -c -e -s -n -S -C -M -a -R -j -V --indent= --raw-output --compact-output --exit-status --slurp --null-input --sort-keys
      --color-output --monochrome-output --ascii-output --raw-input --join-output --tab --unbuffered --arg& --argjson& --args
      --jsonargs --stream --seq --version`,
    reads: 'contents',
    text: { count: 1 },
    check: jqProblem,
  },
  // An encoding name with a slash is read as a file that describes the encoding.
  iconv: { options: '-f@ -t@ -c -s -l --from-code@ --to-code@ --list', reads: 'contents' },
  strings: {
    options: `-n: -t: -e: -a -d -f -o -w -s: -# --all --data --print-file-name --bytes= --radix= --encoding= --include-all-whitespace
      --output-separator= --version`,
    reads: 'contents',
    // Every argument that begins with `@`, also the value of an option, names a file with more arguments.
    check: ({ operands, options }) =>
      [...operands, ...options.flatMap(({ value }) => value ?? [])].every((word) => /^[^@]/.test(startOf(word)))
        ? undefined
        : 'it may read more arguments from a file',
  },
  base64: { options: '-d -D -w: --decode --wrap=', reads: 'contents', maxOperands: 1 },
  od: {
    options: `-A: -j: -N: -S: -t: -v -w? -a -b -c -d -f -i -l -o -s -x --address-radix= --endian= --skip-bytes= --read-bytes= --strings?
      --format= --output-duplicates --width? --version`,
    reads: 'contents',
  },
  // `-f` reads a format from a file.
  hexdump: {
    options: '-b -c -C -d -o -x -e: -n: -s: -v --canonical --format= --length= --skip= --no-squeezing --version',
    reads: 'contents',
  },
  // It writes to a second operand, and after the first operand an option is an operand.
  xxd: {
    options: '-a -b -c: -e -g: -i -l: -p -r -s: -u',
    reads: 'contents',
    maxOperands: 1,
    stopsAtOperand: true,
    noClusters: true,
  },
  seq: { options: '-f: -s: -w --format= --separator= --equal-width --version', anyWord: true },
  expr: { options: '--version', anyWord: true },
  numfmt: {
    options: `-d: -z --debug --delimiter= --field= --format= --from= --from-unit= --grouping --header? --invalid= --padding= --round=
      --suffix= --to= --to-unit= --zero-terminated --version`,
    anyWord: true,
  },
  shuf: {
    options: '-e -i: -n: -r -z --echo --input-range= --head-count= --repeat --zero-terminated',
    reads: 'contents',
  },
  tsort: { options: '--version', reads: 'contents' },

  // Archives
  tar: {
    startsWithLetters: /^[tvzjJ]+f$/,
    options: '-t -v -z -j -J -f@ --list --verbose --file@ --gzip --bzip2 --xz',
    check: (call) => {
      const files = valuesOf(call, '-f --file').map(textOf)
      // A colon in its name refers to another machine.
      const isLocal = files.length === 1 && files.every((file) => file !== undefined && !file.includes(':'))
      return hasOption(call, '-t --list') && isLocal ? undefined : 'it may do more than list'
    },
  },
  unzip: { options: '-l', check: (call) => (hasOption(call, '-l') ? undefined : 'it may do more than list') },
  zipinfo: { options: '-1 -s -m -l -h -t' },

  // The machine
  date: {
    options: '-u -R -I? -d: -r@ --utc --universal --rfc-email --iso-8601? --rfc-3339= --date= --reference@',
    // Without a plus it sets the time.
    check: ({ operands }) =>
      operands.every((word) => startOf(word).startsWith('+')) ? undefined : 'it may set the clock',
  },
  cal: { options: '-1 -3 -y -m -j -s', anyWord: true },
  sleep: { options: '--version', anyWord: true },
  whoami: { options: '--version', anyWord: true },
  id: {
    options: '-a -Z -g -G -n -r -u -z --context --group --groups --name --real --user --zero --version',
    anyWord: true,
  },
  groups: { options: '--version', anyWord: true },
  // It would show a file given instead of the list of sessions; `--lookup` resolves host names.
  users: { options: '', maxOperands: 0 },
  who: {
    options: `-a -b -d -H -l -m -p -q -r -s -t -T -w -u --all --boot --dead --heading --ips --login --process --count --runlevel --short
      --time --users --mesg --message --writable --version`,
    maxOperands: 0,
  },
  tty: { options: '-s --silent --quiet --version', anyWord: true },
  hostname: { options: '-s --short', maxOperands: 0 },
  uname: {
    options: `-a -s -n -r -v -m -p -i -o --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor
      --hardware-platform --operating-system --version`,
    anyWord: true,
  },
  // On other systems it starts the given program.
  arch: { options: '', maxOperands: 0 },
  nproc: { options: '--all --ignore= --version', anyWord: true },
  uptime: { options: '-p -s -V --pretty --since --version', anyWord: true },
  free: {
    options: `-b -k -m -g -h -l -t -v -w -s: -c: -V --bytes --kilo --mega --giga --tera --kibi --mebi --gibi --tebi --human --si --lohi
      --total --committed --seconds= --count= --wide --version`,
    anyWord: true,
  },
  vmstat: {
    options:
      '-a -f -m -n -s -d -D -S: -w -t -y --active --forks --slabs --stats --disk --disk-sum --unit= --wide --timestamp',
  },
  // `--sysroot` reads from another folder.
  lscpu: {
    options:
      '-a -b -B -C? -c -J -e? -p? -x -y --all --online --bytes --caches? --offline --json --extended? --parse? --hex --physical',
    maxOperands: 0,
  },
  lsblk: {
    options: `-A -D -E: -I: -J -M -O -P -S -T? -a -b -d -e: -f -i -l -m -n -o: -p -r -s -t -w: -x: -z --json --output-all --pairs --tree?
      --all --bytes --nodeps --exclude= --fs --ascii --list --perms --noheadings --output= --paths --raw --inverse --topology --sort=`,
  },
  // `-F` reads a file, and `-N` is about another process.
  findmnt: {
    options: `-k -A -a -b -C -c -D -d: -e -f -i -J -l -n -O: -o: -P -R -r -S: -T: -M: -t: -U -u -v --kernel --all --ascii --bytes --df
      --direction= --first-only --invert --json --list --noheadings --options= --output= --output-all --pairs --real --pseudo
      --submounts --raw --source= --target= --mountpoint= --types= --uniq --notruncate --nofsroot --tree`,
  },
  // `-m` starts `gzip`.
  locale: { options: '-a -c -k -v --all-locales --category-name --keyword-name --verbose --version' },
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
    // Among the letters without a dash, `e` shows the environment of other processes.
    check: (call) => {
      if (mayShowEnvironment(call)) return 'it may show the environment of other processes'
      const isPlain = call.operands.every((word) => /^(?:[auxwfjl]+|[0-9]+)$/.test(textOf(word) ?? ' '))
      const columns = valuesOf(call, '-o').every(
        (word) => /^[a-z%=,]+$/.test(textOf(word) ?? '') && !textOf(word)?.includes('env'),
      )
      return isPlain && columns ? undefined : 'it may show the environment of other processes'
    },
  },
  pgrep: {
    options: '-a -f -l -x -n -o -c -u: -P: --list-full --list-name --full --exact --count --newest --oldest --parent=',
  },
  // An operand may be a host name, which is resolved.
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

/** A program may import other files by name; an unknown program may do so too. */
function jqProblem(call: ParsedCall): string | undefined {
  const [first] = call.operands
  const isKnown = first === undefined || first.pieces.length === 0 || startOf(first) !== ''
  const mayImport = call.operands.some((word) => /^\s*(?:#|(?:module|import|include)\b)/.test(startOf(word)))
  return isKnown && !mayImport ? undefined : 'its program may read other files'
}

/**
 * If procps cannot use a call, it reads all words again as letters without a dash, also the value `e` of `-u e`. Only
 * calls with these options are certain to be read as they are written.
 */
function mayShowEnvironment(call: ParsedCall): boolean {
  const hasLetter = valuesOf(call, '-u -C').some((value) => textOf(value)?.includes('e') ?? true)
  if (!hasLetter && !hasOption(call, '-e')) return false
  const areNames = valuesOf(call, '-C').every((value) => /^[\w-]+$/.test(textOf(value) ?? ''))
  const isCertain = areNames && hasOnlyOptions(call, '-e -f -F -l -w -C -o --sort --no-headers --forest')
  return !isCertain || call.operands.length > 0
}

function needsOption(names: string): (call: ParsedCall) => string | undefined {
  return (call) => (hasOption(call, names) ? undefined : 'it may do more than list')
}

/** Programs that may only print their version. Excludes tools that a file in the working folder redirects. */
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
  ...Object.entries(programs).map(([name, rule]) => [name, { ...rule, options: `${rule.options} --help` }] as const),
  ...Object.entries(aliases).flatMap(([name, of]) => (programs[of] ? [[name, programs[of]] as const] : [])),
  ...Object.entries(versions).map(
    ([name, options]) => [name, { options, maxOperands: 0, check: needsOption(options) }] as const,
  ),
])

/**
 * Whether an awk program only prints. Its text is not parsed: a misplaced slash or quote would make the parser see text
 * where awk sees code. Instead nothing in it, not even a string, may look like a construct that writes, runs or
 * connects.
 */
export function awkOnlyPrints(program: string): boolean {
  const withoutOr = program.replaceAll('||', '  ')
  if (/[|@]|system|getline|ARGV|ARGC|SYMTAB|FUNCTAB|PROCINFO|ENVIRON|extension|inet/.test(withoutOr)) return false
  // Only output after a `print` can be redirected to a file; before the first one, `>` compares.
  const print = program.indexOf('print')
  return print === -1 || !program.includes('>', print)
}
