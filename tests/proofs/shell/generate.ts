import { readOnlyPrograms } from '../../../packages/agent/src/permissions/shell/programs/read-only-programs.ts'

/**
 * Makes up command lines: programs of the list with options of theirs and of others, quoted in all ways, put together in all ways
 * that a shell knows, and now and then something that must not pass. About half of them should, else the proof proves nothing.
 */
export class CommandGrammar {
  readonly #random: () => number
  /** How likely a place is to hold something evil; each command has its own. */
  #malice = 0

  constructor(random: () => number) {
    this.#random = random
  }

  command(): string {
    this.#malice = this.#one([0, 0, 0, 0, 0.02, 0.1, 0.3])
    return this.#line(2)
  }

  #line(depth: number): string {
    if (depth === 0 || this.#chance(0.45)) return this.#pipeline(depth)
    const inner = (): string => this.#line(depth - 1)
    return this.#one<() => string>([
      () => `${inner()}; ${inner()}`,
      () => `${inner()} && ${inner()}`,
      () => `${inner()} || ${inner()}`,
      () => `${inner()}\n${inner()}`,
      () => `(${inner()})`,
      () => `{ ${inner()}; }`,
      () => `if ${inner()}; then ${inner()}; fi`,
      () => `if ${inner()}; then ${inner()}; else ${inner()}; fi`,
      () => `for f in ${this.#words()}; do ${inner()}; done`,
      () => `for f in ${this.#words()}; do ${this.#program()} "$f"; done`,
      () => `case ${this.#word()} in ${this.#one(['a', 'a.txt', '*'])}) ${inner()} ;; esac`,
      () => `x=${this.#word()}; ${inner()}`,
      () =>
        `x=${this.#one(['a.txt', '-l', '-oC', 'C', '5', "'a b'", '$(git ls-files)', '$(cat subscript.txt)'])}; ${inner()}`,
      () => `cd ${this.#one(['src', '.', 'g', '..', '~', this.#word()])}; ${inner()}`,
      () => `! ${inner()}`,
      () => `while read -r f; do ${this.#program()} "$f"; done < ${this.#operand()}`,
      () => `[[ ${this.#word()} ${this.#one(['==', '!=', '=~', '-eq', '-nt', '<'])} ${this.#word()} ]] && ${inner()}`,
      () => `[[ ${this.#one(['-f', '-n', '-v', '-z', '-d'])} ${this.#word()} ]] && ${inner()}`,
      () => `(( ${this.#arithmetic()} )) && ${inner()}`,
      () => `${inner()} # ${this.#one(['remark', "it's", '$(touch C)', '"'])}`,
      () => `${inner()} &\nwait`,
    ])()
  }

  #pipeline(depth: number): string {
    const stages = this.#one([1, 1, 1, 1, 2, 2, 3])
    const parts = Array.from({ length: stages }, () => this.#stage(depth))
    return parts.join(this.#one([' | ', ' | ', '|', ' |& ']))
  }

  #stage(depth: number): string {
    if (this.#evil()) return this.#one(evilCommands)
    if (this.#chance(0.08)) return `${this.#one(wrappers)} ${this.#program()}`
    if (this.#chance(0.04)) return `${this.#one(assignments)} ${this.#program()}`
    const command = this.#program()
    const redirection = this.#redirection(depth)
    return this.#chance(0.1) ? `${redirection} ${command}` : `${command}${redirection}`
  }

  /** A program with options and operands. */
  #program(): string {
    if (this.#chance(0.35)) return this.#quoteSome(this.#one(everyday))
    const [name, rule] = this.#one([...readOnlyPrograms])
    const options = rule.options.split(/\s+/).filter(Boolean)
    const count = this.#one([0, 1, 1, 2])
    const words = Array.from({ length: count }, () => this.#option(options))
    const operands = Array.from({ length: this.#one([0, 1, 1, 1, 2]) }, () => this.#operand())
    const text = rule.text && this.#chance(0.8) ? [this.#text(name)] : []
    const all = this.#chance(0.3) ? [...text, ...operands, ...words] : [...words, ...text, ...operands]
    return [this.#quote(name), ...all].join(' ')
  }

  #option(options: readonly string[]): string {
    if (this.#evil()) return this.#one(evilOptions)
    if (options.length === 0) return this.#one(['-l', '-n', '-a', '--help', '--version'])
    const option = this.#one(options)
    const kind = option.length > 2 ? option.slice(-1) : ''
    const name = /[:=@?]/.test(kind) ? option.slice(0, -1) : option
    if (name === '-#') return `-${this.#one(['1', '5', '20'])}`
    const value =
      kind === '@' ? this.#operand() : this.#one(['1', '2', 'a', ':', ',', '1,2', '%h', 'a.txt', '"$x"', '-o', '-oC'])
    if (kind === ':' || kind === '=')
      return this.#chance(0.5) ? `${name} ${value}` : `${name}${name.startsWith('--') ? '=' : ''}${value}`
    if (kind === '?') return this.#chance(0.5) ? name : `${name}${name.startsWith('--') ? '=' : ''}${value}`
    // Some take an abbreviation for the whole.
    return this.#chance(0.05) ? name.slice(0, -1) : this.#quoteSome(name)
  }

  #text(name: string): string {
    if (name === 'sed') return this.#one(this.#evil() ? evilSed : sedScripts)
    if (name.endsWith('awk')) return this.#one(this.#evil() ? evilAwk : awkPrograms)
    if (name === 'jq') return this.#one(["'.'", "'.list[]'", '.name', "'.list | length'", "'env.HOME'", '"$x"'])
    return this.#one(['a', "'a'", '"b c"', "'^[a-z]'", 'TODO', "'import .* from'", '"$x"', '.'])
  }

  #operand(): string {
    if (this.#evil()) return this.#one(evilWords)
    return this.#one<() => string>([
      () => this.#quote(this.#one(names)),
      () => this.#quote(this.#one(names)),
      () => this.#one(['src/*.ts', './*.txt', 'src/one.t?', 'src/[ot]*.ts', '*', '*.txt', 'g/*', '.h*']),
      () => this.#word(),
    ])()
  }

  #words(): string {
    return Array.from({ length: this.#one([1, 2, 3]) }, () => this.#operand()).join(' ')
  }

  #word(): string {
    if (this.#evil()) return this.#one(evilWords)
    return this.#one<() => string>([
      () => this.#quote(this.#one(names)),
      () => this.#quote(this.#one(['a', 'hello', '5', 'a b', 'x=y', 'ünï', '-n', '--', '.', '/'])),
      () =>
        this.#one([
          '"$x"',
          '$x',
          '"${x}"',
          '${x%.txt}',
          '${x:-a}',
          '${#x}',
          '"$HOME"',
          '$PWD',
          '$?',
          '"$f"',
          '"${f##*/}"',
          '${x:0:2}',
        ]),
      () => `$((${this.#arithmetic()}))`,
      () => `$(${this.#program()})`,
      () => `"$(${this.#program()})"`,
      () => `\`${this.#one(everyday)}\``,
      () => `<(${this.#program()})`,
      () =>
        this.#one([
          '{a.txt,b.txt}',
          'src/{one,two}.ts',
          '{1..3}',
          "a'b'c",
          'a"b"c',
          'a\\ b',
          "$'a\\tb'",
          "''",
          '""',
          '~/x',
          '~',
        ]),
    ])()
  }

  #arithmetic(): string {
    if (this.#evil())
      return this.#one(['a[$(touch C)]', 'x', '$(touch C)', 'x=1', '$(cat subscript.txt)', 'i++', '`touch C`'])
    return this.#one([
      '1 + 2',
      '3*4',
      '7 % 2',
      '(1 + 2) * 3',
      '1 ? 2 : 3',
      '2 ** 3',
      '1 < 2',
      '$# + 1',
      '$? == 0',
      '0x10',
      '-1',
    ])
  }

  #redirection(depth: number): string {
    if (this.#evil()) return this.#one(evilRedirections)
    if (this.#chance(0.7)) return ''
    return this.#one<() => string>([
      () => ' 2>/dev/null',
      () => ' 2>&1',
      () => ' >/dev/null 2>&1',
      () => ' &>/dev/null',
      () => ` < ${this.#quote(this.#one(names))}`,
      () => ` <<< ${this.#word()}`,
      () => (depth === 2 ? ` <<EOF\nhello $x ${this.#one(['', '$HOME', 'a "b"', "it's"])}\nEOF` : ''),
      () => (depth === 2 ? ` <<'EOF'\n$(touch C) \`touch C\` ${this.#one(['', '"', "'"])}\nEOF` : ''),
    ])()
  }

  #quoteSome(text: string): string {
    return this.#chance(0.1)
      ? text
          .split(' ')
          .map((word) => (/^[\w./-]+$/.test(word) ? this.#quote(word) : word))
          .join(' ')
      : text
  }

  /** The same word, written in another way. */
  #quote(word: string): string {
    const middle = Math.floor(this.#random() * word.length)
    const [start, end] = [word.slice(0, middle), word.slice(middle)]
    const isPlain = /^[\w./=-]+$/.test(word)
    return this.#one<() => string>([
      () => (isPlain ? word : `'${word}'`),
      () => (isPlain ? word : `"${word}"`),
      () => (isPlain ? word : `'${word}'`),
      () => `'${word}'`,
      () => `"${word}"`,
      () => `"${start}"'${end}'`,
      () => (isPlain ? `${start}''${end}` : `"${word}"`),
      () => (isPlain && /[a-z]/.test(end.slice(0, 1)) ? `${start}\\${end}` : `'${word}'`),
    ])()
  }

  #evil(): boolean {
    return this.#random() < this.#malice
  }

  #chance(likelihood: number): boolean {
    return this.#random() < likelihood
  }

  #one<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)]!
  }
}

const names = [
  'a.txt',
  'b.txt',
  'src',
  'src/one.ts',
  '.',
  'g',
  'g/c.txt',
  'nothing',
  'a.json',
  './a.txt',
  '/etc/hostname',
  'package.json',
  'q.txt',
]

const everyday = [
  'ls -la',
  'pwd',
  'echo hello',
  'cat a.txt',
  'git status -s',
  'git log --oneline -5',
  'git diff HEAD~1 --stat',
  'git show HEAD --name-only',
  'git ls-files',
  'git branch -a',
  "git log --format='%h %s' -2",
  'git -C src log -1',
  'git rev-parse HEAD',
  'git blame a.txt',
  'git grep -n TODO',
  'git config --get user.name',
  'git shortlog -sn HEAD',
  'find . -name "*.ts"',
  "find src -type f -printf '%s %p\\n'",
  'find . -maxdepth 1 -newer a.txt',
  'grep -rn TODO src',
  "grep -c '' a.txt",
  'rg -l import',
  "rg -n 'const' src",
  'rg --files',
  "sed -n '1,2p' a.txt",
  "sed 's/a/b/g' a.txt",
  "awk '{print $1}' a.txt",
  'sort -u a.txt',
  'sort -k1,1 a.txt',
  'uniq -c a.txt',
  'head -n 2 a.txt',
  'wc -l a.txt b.txt',
  'cut -d" " -f1 a.txt',
  'tr a-z A-Z < a.txt',
  'jq .name a.json',
  'diff a.txt b.txt',
  'diff -u a.txt b.txt',
  'date +%F',
  'test -f a.txt',
  '[ -d src ]',
  '[ "$x" = a ]',
  "printf '%s\\n' a b",
  'printf "%d\\n" 5',
  'basename src/one.ts .ts',
  'stat -c %s a.txt',
  'du -sh src',
  'sha256sum a.txt',
  'seq 3',
  'env',
  'id -u',
  'true',
  'command -v git',
  'type ls',
  'tar tf t.tar',
  'file a.txt',
  'git ls-files | xargs wc -l',
  'find src -name "*.ts" | xargs grep -l const',
  'ls | sort | head -3',
  'ls src | while read -r f; do echo "$f"; done',
]

const wrappers = [
  'time',
  'timeout 5',
  'timeout -k 1 2',
  'command',
  'env',
  'nice',
  'xargs',
  'xargs -n 1',
  'xargs -I{}',
  'exec',
  'builtin',
  'nohup',
  'eval',
]

const assignments = [
  'LC_ALL=C',
  'x=1',
  'TZ=UTC',
  'PATH=.',
  'LC_ALL=$(touch C)',
  'GIT_PAGER=./p.sh',
  'PAGER=cat',
  'IFS=,',
  'BASH_ENV=p.sh',
  'NO_COLOR=1',
  'GIT_TRACE=$PWD/C',
]

const sedScripts = [
  "-n '1p'",
  "-n '/a/,/b/p'",
  "'s/a/b/'",
  '-e p -e d',
  "'$d'",
  "'1!G;h;$!d'",
  "-E 's/(a)/\\1/g'",
  "'s|a|b|;s/c/d/'",
  "'y/abc/xyz/'",
  "'/^$/d'",
  "'{p;p}'",
  "-n '$='",
  "'s/[^/]*$//'",
]
const evilSed = [
  "-n 'w C'",
  "'1e touch C'",
  "'s/.*/touch C/e'",
  "-n 's/a/b/w C'",
  "-n '/[/]/w C'",
  '-f sed.txt',
  "-i 's/a/b/'",
  "-n 'p;w C'",
  "-n $'p\\nw C'",
  "-n --expr='w C'",
  "'y/a/b/;w C'",
  "'r a.txt\nw C'",
  "-n '\\,a,w C'",
]
const awkPrograms = [
  "'{print $1}'",
  "-F: '{print $1}'",
  "'NR==1'",
  "'$1 > 2'",
  "'{s+=$1} END {print s}'",
  "-v n=2 'NR<=n'",
  "'/a/ || /b/'",
  "'length > 3 {print length}'",
]
const evilAwk = [
  '\'{print > "C"}\'',
  '\'BEGIN{system("touch C")}\'',
  '\'/"/{system("touch C")} #"\'',
  '\'{print | "sh"}\'',
  '-f awk.txt',
  '\'BEGIN{"touch C"|getline}\'',
  '\'{printf "x">>"C"}\'',
]

const evilCommands = [
  'touch C',
  './p.sh',
  'tee C',
  'sh -c "touch C"',
  'eval touch C',
  'xargs touch C',
  'sort -o C a.txt',
  'uniq a.txt C',
  'git log -1 --output=C',
  'find . -fprint C',
  'source p.sh',
  'printf -v "a[\\$(touch C)]" x',
  'test -v "a[\\$(touch C)]"',
  '$(echo touch) C',
  'x=touch; $x C',
  'ls() { touch C; }; ls',
  'trap "touch C" EXIT',
  'xxd a.txt C',
  'bash cmd.txt',
  'coproc touch C',
  'echo $[a[$(touch C)]]',
  'read "a[\\$(touch C)]" <<< 1',
]
const evilOptions = [
  '-oC',
  '-o C',
  '--output=C',
  '--outp=C',
  '--pre=./p.sh',
  '-exec touch C ;',
  '-fprint C',
  '-delete',
  '-i',
  '--in-place',
  '-c',
  '--compress-program=./p.sh',
  '-O./p.sh',
  '--config=C',
  '-f sed.txt',
  '--file=awk.txt',
  '-T .',
  '-C',
  '-x',
  '-e',
  '-s',
  '-w C',
]
const evilWords = [
  '$(touch C)',
  '"$(touch C)"',
  '`touch C`',
  '${x:=$(touch C)}',
  '${x@P}',
  '${!x}',
  '${a[$(touch C)]}',
  '"${x:-\'$(touch C)\'}"',
  '<(touch C)',
  '>(touch C)',
  '-oC',
  'C',
  '{a,$(touch C)}',
  '$((a[$(touch C)]))',
  '$[a[$(touch C)]]',
  "$'\\x24(touch C)'",
  '@(a|$(touch C))',
  '$"$(touch C)"',
  '\\$(touch C)',
  '"\\$(touch C)"',
  "'$(touch C)'",
  '*$(touch C)',
  '~$(touch C)',
  '"a`touch C`"',
  '$x$(touch C)',
]
const evilRedirections = [
  ' > C',
  ' >> C',
  ' >| C',
  ' 2> C',
  ' &> C',
  ' >& C',
  ' <> C',
  ' > "C"',
  ' > $x',
  ' 3> C',
  ' > >(tee C)',
  ' < <(touch C)',
  ' <<< "$(touch C)"',
  ' > /dev/null$(touch C)',
  ' {fd}> C',
  ' < /dev/tcp/127.0.0.1/9',
  ' > /dev/stderr',
  ' <<EOF\n$(touch C)\nEOF',
  ' <<EOF\n${x:-`touch C`}\nEOF',
]
