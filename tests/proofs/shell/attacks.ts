import type { Chance } from '../../corpus/chance.ts'
import type { Case } from './oracle.ts'
import type { ProgramOptions } from './program-options.ts'
import { linkedPaths, oddFolders, oddNames, repositoryFolders, type Workspace } from './world.ts'

/**
 * Makes up command lines that look like reading and carry something that must not pass: text from some source (a special parameter,
 * a variable that was read, names of files, a link) gets into a place where a program obeys it. Sources, ways and places are chosen
 * independently, so that most combinations were never written down by anybody.
 */
export class AttackGrammar {
  readonly #chance: Chance
  readonly #programs: readonly ProgramOptions[]

  constructor(chance: Chance, programs: readonly ProgramOptions[]) {
    this.#chance = chance
    this.#programs = programs
  }

  attack(): Case {
    return this.#chance.of<() => Case>([
      () => this.#options(),
      () => this.#options(),
      () => this.#special(),
      () => this.#variable(),
      () => this.#variable(),
      () => this.#assembled(),
      () => this.#assembled(),
      () => this.#names(),
      () => this.#names(),
      () => this.#links(),
      () => this.#links(),
      () => this.#repositories(),
      () => this.#redirections(),
    ])()
  }

  // Options of programs: listed, unlisted, abbreviated, joined

  #options(): Case {
    const workspace = this.#workspace()
    const { of } = this.#bound()
    const program = of(this.#programs)
    const options = Array.from({ length: of([1, 1, 1, 2, 3]) }, () => this.#option(program, workspace))
    const text = /grep$|^rg$|^sed$|awk$|^jq$|^tr$/.test(program.name) && this.#chance.is(0.6) ? [of(patterns)] : []
    const operands = Array.from({ length: of([0, 1, 1, 2]) }, () => this.#operand(workspace))
    const words = this.#chance.is(0.35) ? [...text, ...operands, ...options] : [...options, ...text, ...operands]
    return { workspace, command: this.#surround([program.name, ...words].join(' ')) }
  }

  #option({ long, short }: ProgramOptions, workspace: Workspace): string {
    const { of, is } = this.#bound()
    if (short.length > 0 && (long.length === 0 || is(0.4))) {
      const letters = of([short, short.map((each) => each)])
      const cluster = is(0.3) ? `${of(letters)}${of(letters).slice(1)}` : of(letters)
      return of<() => string>([
        () => cluster,
        () => `${cluster}${this.#value(workspace)}`,
        () => `${cluster} ${this.#value(workspace)}`,
      ])()
    }
    const name = long.length > 0 ? of(long) : '--help'
    const written = is(0.4) ? name.slice(0, 3 + this.#chance.below(Math.max(1, name.length - 3))) : name
    return of<() => string>([
      () => written,
      () => `${written}=${this.#value(workspace)}`,
      () => `${written}=${this.#value(workspace)}`,
      () => `${written} ${this.#value(workspace)}`,
    ])()
  }

  #value(workspace: Workspace): string {
    const { of, is } = this.#bound()
    return is(0.5) ? this.#operand(workspace) : of(optionValues)
  }

  #operand(workspace: Workspace): string {
    const { of, is } = this.#bound()
    if (is(0.35)) return of(secretPaths)
    if (workspace === 'links' && is(0.5)) return quote(of(linkedPaths))
    if (workspace === 'odd' && is(0.4)) return quote(of(oddNames))
    if (workspace === 'repos' && is(0.3)) return of(repositoryFolders)
    return of(plainPaths)
  }

  // Special parameters

  /** A parameter that may be empty, negative or anything, spliced into a word that is obeyed without it. */
  #special(): Case {
    const { of, is } = this.#bound()
    const { template, payloads } = of(sinks)
    const payload = of(payloads)
    const parameter = is(0.4) ? of(['$!', '${!}']) : of(specialParameters)
    const at = is(0.6) ? 0 : this.#chance.below(payload.length + 1)
    const [before, after] = [payload.slice(0, at), payload.slice(at)]
    const word = of([
      `${plain(before)}${parameter}${plain(after)}`,
      `"${doubled(before)}${parameter}${doubled(after)}"`,
      `${plain(before)}"${parameter}"${plain(after)}`,
      `${plain(before)}"${parameter}"${plain(after)}`,
      `${plain(before)}\${x:-${parameter}}${plain(after)}`,
      `${plain(before)}$(echo ${parameter})${plain(after)}`,
    ])
    const arithmetic = of(['$((0-1))', '$((1-2))', '$(( -1 ))', '$((~0))', '$((5-10))', '-$((1))', '$((-$#-1))'])
    const command = fill(template, is(0.1) ? arithmetic : word)
    return { workspace: this.#workspace(), command: this.#surround(command) }
  }

  // Variables whose value the judge must not believe

  #variable(): Case {
    const { of } = this.#bound()
    const { template, payloads, harmless } = of(sinks)
    const payload = of(payloads)
    const use = fill(template, of(['"$x"', '"$x"', '$x', '"${x}"', '${x}', '"${x:-a}"', '"${x%.}"', '"${y:-$x}"']))
    const before = of([`x=${quote(harmless)}; `, `x=${quote(harmless)}; `, `x=${quote(harmless)}\n`, ''])
    const assign = this.#assign(payload)
    const feed = of([
      ` <<< ${quote(payload)}`,
      ` <<< ${quote(payload)}`,
      ' < paths.txt',
      ` < <(echo ${quote(payload)})`,
    ])
    const piped = `echo ${quote(payload)} | `
    const command = of<() => string>([
      () => `${before}while ${use}; do ${assign} || break; done${feed}`,
      () => `${before}until ! ${use}; do ${assign} || break; done${feed}`,
      () => `${before}while ${assign}; do ${use}; done${feed}`,
      () => `${before}for i in 1 2; do ${use}; ${assign}; done${feed}`,
      () => `${before}for i in 1 2; do if [ $i = 2 ]; then ${use}; fi; ${assign}; done${feed}`,
      () => `${before}{ ${assign}; ${use}; }${feed}`,
      () => `${before}if ${assign}; then ${use}; fi${feed}`,
      () => `${before}${assign}${feed} && ${use}`,
      () => `${before}${assign}${feed}; ${use}`,
      () => `${before}(${assign}; ${use})${feed}`,
      () => `${before}case a in a) ${assign};; esac${feed}; ${use}`,
      () => `${piped}{ ${before}${assign}; ${use}; }`,
      () => `${piped}while ${assign}; do ${use}; done`,
      () => `${before}${piped}while ${use}; do ${assign} || break; done`,
      () => `${before}while ${use} && ${assign}; do :; done${feed}`,
      () => `${before}while :; do ${use}; ${assign} || break; done${feed}`,
      () => `${before}for x in ${quote(payload)}; do :; done; ${use}`,
      () => `${before}for x in a ${quote(payload)}; do ${use}; done`,
    ])()
    return { workspace: this.#workspace(), command: this.#surround(command) }
  }

  /** Every way in which a shell sets `x` from its input or from a word. */
  #assign(payload: string): string {
    const { of, is } = this.#bound()
    const name = of(['x', 'x', '"x"', "'x'", '\\x', "x''", '"$n"x', '{x,y}'])
    const flags = of([
      '',
      '-r ',
      '-r ',
      '-d "" ',
      '-n 99 ',
      '-s ',
      '-t 1 ',
      '-u 0 ',
      '-a ',
      '-p p ',
      '-i a ',
      '-N 30 ',
      '-rd "" ',
      '-er ',
    ])
    const wrapper = of([
      '',
      '',
      '',
      'command ',
      'builtin ',
      'IFS= ',
      'IFS=, ',
      'timeout 1 ',
      'command -p ',
      '\\',
      'time ',
      'env ',
    ])
    if (is(0.7)) return `${wrapper}read ${flags}${of([name, name, `${name} y`, `y ${name}`])}`
    return of([
      `x=${quote(payload)}`,
      `x+=${quote(payload)}`,
      `printf -v x %s ${quote(payload)}`,
      `declare x=${quote(payload)}`,
      `export x=${quote(payload)}`,
      `readonly x=${quote(payload)}`,
      `: "\${x:=${payload.replaceAll('"', '')}}"`,
      'mapfile -t x',
      'readarray -t x',
      'unset x',
      'getopts a: x',
      'let x=1',
      '((x=0-1))',
      'x=$(cat)',
      `x=(${quote(payload)})`,
      `x=$(echo ${quote(payload)})`,
      'read',
    ])
  }

  // Words that become something else when the shell expands them

  /** A word that the sink obeys, put together from pieces. */
  #assembled(): Case {
    const { of } = this.#bound()
    const { template, payloads } = of(sinks)
    const payload = of(payloads)
    const at = this.#chance.below(payload.length)
    const [before, after] = [payload.slice(0, at), payload.slice(at)]
    const [letter, rest] = [after.slice(0, 1), after.slice(1)]
    const use = (word: string): string => fill(template, word)
    const set = (value: string): string => `x=${quote(value)}; `
    const command = of<() => string>([
      () => `${set(before)}${use(`"$x"${plain(after)}`)}`,
      () => `${set(after)}${use(`${plain(before)}"$x"`)}`,
      () => `${set(after)}${use(`${plain(before)}$x`)}`,
      () => `${set(`${payload}zz`)}${use('"${x%zz}"')}`,
      () => `${set(`${payload}.txt`)}${use('${x%.txt}')}`,
      () => `${set(`zz${payload}`)}${use('"${x#zz}"')}`,
      () => `${set(`z${payload}`)}${use('"${x:1}"')}`,
      () => `${set(payload.toUpperCase())}${use('"${x,,}"')}`,
      () => `${set(`${before}zz${after}`)}${use('"${x/zz/}"')}`,
      () => `x=(a ${quote(payload)}); ${use('"${x[1]}"')}`,
      () => `x=(${quote(payload)}); ${use('$x')}`,
      () => `x=y; y=${quote(payload)}; ${use('"${!x}"')}`,
      () => use(`"\${y:-${doubled(payload)}}"`),
      () => use(`"\${y:=${doubled(payload)}}"`),
      () => use(`$(echo ${quote(payload)})`),
      () => use(`"$(printf %s%s ${quote(before)} ${quote(after)})"`),
      () => use(`${plain(before)}$(echo ${quote(after)})`),
      () => use(`\`echo ${quote(payload)}\``),
      () => use(`$(dirname ${quote(`${payload}/a`)})`),
      () => use(`"$(basename ${quote(`a/${payload}`)})"`),
      () => use(`${plain(before)}[${letter}]${plain(rest)}`),
      () => use(`${plain(before)}?${plain(rest)}`),
      () => use(`${plain(before)}*`),
      () => use(`{${plain(payload)},a.txt}`),
      () => use(`${plain(before)}{${plain(after)},x}`),
      () => use(`$'${payload.replaceAll("'", '')}'`),
      () => use(`$'\\x${payload.charCodeAt(0).toString(16)}${payload.slice(1).replaceAll("'", '')}'`),
      () => use(`${plain(before)}''"${doubled(after)}"`),
      () => use(`${plain(before)}\\\n${plain(after)}`),
      () => `cd ../home; ${use(quote(payload.replace('../home/', '')))}`,
      () => `cd; ${use(quote(payload.replace('../home/', '')))}`,
      () => `cd ../home && cd - && ${use(quote(payload))}`,
      () => `cd ~ && ${use(of(['.n*', '.ssh/*', '.*/*', '*', '.']))}`,
      () =>
        use(
          of([
            '~+/../home/.netrc',
            '~-/.netrc',
            '"$HOME"/.netrc',
            '${HOME}/.ne*',
            '~/.n*',
            '../h*/.netrc',
            '../home//.netrc',
            '/proc/self/cwd/../home/.netrc',
            '$PWD/../home/.netrc',
            '$OLDPWD/.netrc',
          ]),
        ),
      () => use(`<(cat ${quote(payload)})`),
      () => `${use('/dev/stdin')} < ${quote(payload)}`,
      () => `exec 3< ${quote(payload)}; ${use('/dev/fd/3')}`,
      () => `echo ${quote(payload)} | xargs ${use('')}`,
      () => `cat <<E | xargs ${use('')}\n${payload}\nE`,
      () => `xargs -a paths.txt ${use('')}`,
      () => `read -r x < ${quote(payload)}; echo "$x"`,
      () => `x=$(< ${quote(payload)}); echo "$x"`,
    ])()
    return { workspace: this.#workspace(), command: this.#surround(command) }
  }

  // Names of files as data

  #names(): Case {
    const { of, is } = this.#bound()
    const workspace = of<Workspace>(['odd', 'odd', 'odd', 'links', 'arena', 'repos'])
    const producer = of(producers)
    const { template } = of(sinks.filter(({ takesFiles }) => takesFiles || is(0.2)))
    const sink = (word: string): string => fill(template, word)
    const inside = workspace === 'odd' && is(0.4) ? `cd ${of(oddFolders)}; ` : ''
    const elsewhere = of(['', '', '', 'cd ~; ', 'cd ~/.ssh; ', 'cd ../home; ', 'cd src; ', 'cd fake; '])
    const reader = of(['read -r f', 'read f', 'IFS= read -r f', 'read -r a f', "IFS= read -r -d '' f", 'read -r f g'])
    const xargs = of([
      'xargs',
      'xargs',
      'xargs -0',
      'xargs -n 1',
      "xargs -d '\\n'",
      'xargs -r',
      'xargs -L 1',
      'xargs -P 2',
    ])
    const command = of<() => string>([
      () => `${elsewhere}${sink(`$(${producer})`)}`,
      () => sink(`$(${producer})`),
      () => `${elsewhere}${sink(`"$(${producer})"`)}`,
      () => `${producer} | ${xargs} ${sink('')}`,
      () => `${producer} | ${xargs} ${sink('')}`,
      () => `${producer} | (${elsewhere}${xargs} ${sink('')})`,
      () => `${producer} | xargs -I{} ${sink(of(['{}', './{}', 'src/{}', '../home/{}', '"{}"']))}`,
      () => `${producer} | while ${reader}; do ${elsewhere}${sink('"$f"')}; done`,
      () => `${producer} | while ${reader}; do ${sink(of(['"$f"', '$f', './"$f"', '-- "$f"']))}; done`,
      () => `for f in $(${producer}); do ${elsewhere}${sink('"$f"')}; done`,
      () => `for f in ${of(globs)}; do ${sink(of(['"$f"', '$f', './$f', '"./$f"']))}; done`,
      () => `x=$(${producer}); ${elsewhere}${sink(of(['$x', '"$x"']))}`,
      () => `${elsewhere}${sink(of(globs))}`,
      () => sink(of(globs)),
      () => sink(`-- ${of(globs)}`),
      () =>
        `${producer} | ${of(['sort', 'head -n 9', 'tail -n 9', 'grep a', 'uniq', 'cat', 'sed s/a/a/'])} | ${xargs} ${sink('')}`,
      () => sink(`$(${producer} | head -n 3)`),
    ])()
    return { workspace, command: `${inside}${command}` }
  }

  // Links

  #links(): Case {
    const { of, is } = this.#bound()
    const path = (): string => (is(0.1) ? of(plainPaths) : of(linkedPaths))
    const { template } = of(sinks.filter(({ takesFiles }) => takesFiles))
    const folder = (): string => of(linkedPaths.filter((each) => !/\w\.\w+$/.test(each)))
    const inside = of([
      '../gh/hosts.yml',
      'hosts.yml',
      '../config',
      'id_rsa',
      '../.netrc',
      'x',
      'a.txt',
      '..',
      '../.ssh/id_rsa',
      '*',
      '../*/*',
    ])
    const command = of<() => string>([
      () => fill(template, quote(path())),
      () => fill(template, quote(path())),
      () => fill(template, quote(`${folder()}/${inside}`)),
      () => `cd ${folder()}; ${fill(template, inside)}`,
      () => `cd ${of(['-P', '-L', '--'])} ${folder()} && ${fill(template, inside)}`,
      () => `cat < ${quote(path())}`,
      () => fill(template, of([...globs, `${folder()}/*`, `${folder()}/.*`, 'l*/h*', 'z*/i*', './*/../*'])),
      () => `${of(recursive)} ${of([folder(), path(), '.', '*', ''])}`,
      () => `${of(recursive)} ${of([folder(), path(), '.', '*', ''])}`,
      () => `git -C ${folder()} ${of(gitReads)}`,
      () => `find ${folder()} ${of(['-type f', '-follow', '-L'])} | xargs cat`,
      () => `${of(['find', 'find -L', 'find -H'])} ${of([folder(), '.'])} -type f | xargs head -n 1`,
      () => `diff ${path()} ${of(plainPaths)}`,
    ])()
    return { workspace: 'links', command: this.#surround(command) }
  }

  // Repositories

  #repositories(): Case {
    const { of, is } = this.#bound()
    const folder = is(0.85) ? of(repositoryFolders) : of(['.', 'src', 'nothing'])
    const read = (): string => (is(0.2) ? `${of(gitReads)} ${this.#gitOption()}` : of(gitReads))
    const command = of<() => string>([
      () => `git -C ${folder} ${read()}`,
      () => `git -C ${folder} ${read()}`,
      () => `cd ${folder} && git ${read()}`,
      () => `cd ${folder}; git ${read()}`,
      () => `(cd ${folder}; git ${read()} | head -n 5)`,
      () => `git -C ${folder.split('/')[0]} -C ${folder.split('/')[1] ?? '.'} ${read()}`,
      () => `git ${read()} ${folder}`,
      () => `git ${read()} -- ${folder}`,
      () => `for d in ${folder} src; do git -C "$d" ${read()}; done`,
      () => `cd ${folder}; cat $(git ls-files)`,
      () => `cd ${folder}; git ls-files | xargs head -n 2`,
    ])()
    return { workspace: is(0.95) ? 'repos' : this.#workspace(), command: this.#surround(command) }
  }

  #gitOption(): string {
    const { of } = this.#bound()
    return of([
      '-p',
      '--submodule=diff',
      '--submodule',
      '--ext-diff',
      '--textconv',
      '-L1,5:.env',
      '-L1,2:f.txt',
      "-- '.en?'",
      '-- .env',
      '--stat',
      '--cached',
      '-S S3',
      '--all',
      '--output=C',
      '--show-signature',
    ])
  }

  // Writes that are judged by where they lead

  #redirections(): Case {
    const { of, is } = this.#bound()
    const workspace = of<Workspace>(['links', 'links', 'arena', 'odd'])
    const path =
      workspace === 'links' && is(0.8)
        ? of(linkedPaths)
        : of(['out.txt', 'src/out.txt', '../outside/out', '.git/config', './.git/../.git/config', 'a.txt', '~/.bashrc'])
    const operator = of(['>', '>>', '>|', '2>', '&>', '<>'])
    const target = of([quote(path), `"${doubled(path)}"`, quote(`${path}/../config`), quote(`${path}/new`)])
    const command = of([
      `echo hi ${operator} ${target}`,
      `cat a.txt ${operator}${target}`,
      `cd src; ls ${operator} ../${path}`,
    ])
    return { workspace, command: this.#surround(command) }
  }

  /** Now and then the command stands inside of something else. */
  #surround(command: string): string {
    if (this.#chance.is(0.8)) return command
    return this.#chance.of([
      `(${command})`,
      `{ ${command}; }`,
      `if true; then ${command}; fi`,
      `true && ${command}`,
      `ls; ${command}`,
      `${command} | head -n 3`,
      `echo "$(${command})"`,
      `for i in 1; do ${command}; done`,
      `timeout 2 ${command}`,
      `cat a.txt | ${command}`,
    ])
  }

  #workspace(): Workspace {
    return this.#chance.of<Workspace>(['arena', 'arena', 'arena', 'links', 'odd', 'repos'])
  }

  #bound(): { of: <T>(items: readonly T[]) => T; is: (probability: number) => boolean } {
    return { of: (items) => this.#chance.of(items), is: (probability) => this.#chance.is(probability) }
  }
}

/** Quotes a word only if it needs it. */
function quote(word: string): string {
  return /^[\w./~=:,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** A part of a word outside of quotes. */
function plain(part: string): string {
  return part.replaceAll(/[^\w./~=:,@+-]/g, '\\$&')
}

/** A part of a word between double quotes. */
function doubled(part: string): string {
  return part.replaceAll(/["$`\\]/g, '\\$&')
}

function fill(template: string, word: string): string {
  return template.replace('@', () => word)
}

interface Sink {
  /** A command with `@` in the place of the word that it obeys. */
  template: string
  /** Words that make it do more than read, or read a secret. */
  payloads: readonly string[]
  /** A word that does no harm there. */
  harmless: string
  /** The word is the name of a file that is shown. */
  takesFiles?: true
}

const secretPaths = [
  '../home/.ssh/id_rsa',
  '../home/.netrc',
  '~/.ssh/id_rsa',
  '~/.aws/credentials',
  '$HOME/.netrc',
  '.env',
  './.env',
  '../outside/private/x',
  '../outside/.env',
  '~/.config/gh/hosts.yml',
  '~',
  '~/.ssh',
]

/** As they are passed: the shell does not expand what is in quotes or was read. */
const secretWords = ['../home/.ssh/id_rsa', '../home/.netrc', '.env', '../outside/private/x']

const plainPaths = ['a.txt', 'b.txt', 'src', 'src/one.ts', '.', 'a.json', './a.txt', 'nothing', 'src/*.ts', '*.txt']

const patterns = ['a', '.', "'S3'", "''", 'key', "'{print $1}'", 'p', "'1p'", "'.name'", 'a b']

const optionValues = [
  '1',
  '2',
  'a',
  ',',
  ':',
  'C',
  './p.sh',
  'recurse',
  'read',
  'always',
  'never',
  '-',
  '@.env',
  'sh',
  '1,2',
  'a.txt',
  'none',
  'auto',
  'diff',
  '%G?',
  "''",
]

const sinks: readonly Sink[] = [
  { template: 'cat @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'cat -- @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'head -n 3 @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'wc -l @', payloads: [...secretWords, '--files0-from=.env'], harmless: 'a.txt', takesFiles: true },
  {
    template: 'grep -h . @',
    payloads: [...secretWords, '-r', '-f../home/.netrc'],
    harmless: 'a.txt',
    takesFiles: true,
  },
  {
    template: 'sort @ a.txt',
    payloads: ['-oC', '--output=C', '--compress-program=./p.sh', ...secretWords],
    harmless: '-n',
    takesFiles: true,
  },
  { template: 'rg @ a a.txt', payloads: ['--pre=./p.sh', '--hostname-bin=./p.sh', '-z'], harmless: '-n' },
  { template: 'rg a @', payloads: ['--pre=./p.sh', ...secretWords], harmless: 'a.txt', takesFiles: true },
  { template: 'sed -n @ a.txt', payloads: ['1e touch C', 'w C', 's/a/touch C/e', '-i'], harmless: 'p' },
  { template: 'sed "s/a/@/p" a.txt', payloads: ['/w C', 'touch C/e;s/a', '/e;s/a/'], harmless: 'b' },
  { template: "echo 'touch C #a' | sed @", payloads: ['s/a/a/e', '1e touch C', 's/ #a//e'], harmless: 'p' },
  { template: 'sed -n 1p @', payloads: ['-i', '-ew C', ...secretWords], harmless: 'a.txt', takesFiles: true },
  { template: 'git log -1 @', payloads: ['--output=C', '-L1,2:.env', '--ext-diff'], harmless: '--stat' },
  { template: 'git diff @', payloads: ['--output=C', '--ext-diff', '--no-index'], harmless: '--stat' },
  { template: 'git -C @ status', payloads: ['fsmonitor', 'commondir', 'external'], harmless: 'src' },
  { template: 'git grep -h a @', payloads: ['-O./p.sh', '--open-files-in-pager=./p.sh', '--no-index'], harmless: '-n' },
  { template: 'find . @', payloads: ['-delete', '-fprint C'], harmless: '-empty' },
  { template: 'find src -name a @', payloads: ['-delete', '-fls C'], harmless: '-print' },
  { template: 'awk @ a.txt', payloads: ['BEGIN{system("touch C")}', '{print > "C"}'], harmless: '{print $1}' },
  {
    template: "awk '{print $1}' @",
    payloads: [...secretWords, '-f', '--source=BEGIN{system("touch C")}'],
    harmless: 'a.txt',
    takesFiles: true,
  },
  // Programs of their own that read or start something.
  {
    template: 'sed @ a.txt',
    payloads: [
      'r ../home/.netrc',
      '1R ../home/.netrc',
      '$r../home/.netrc',
      'a\\',
      '1{r../home/.netrc\n}',
      's/a/b/;r../home/.netrc',
    ],
    harmless: 'p',
  },
  {
    template: 'awk @ a.txt',
    payloads: [
      'BEGIN{while((getline l < "../home/.netrc")>0) print l}',
      '{getline<"../home/.netrc";print}',
      'BEGIN{ARGV[1]="../home/.netrc"}1',
      '@include "p.sh"',
      'BEGIN{print ENVIRON["HOME"] | "sh"}',
    ],
    harmless: '1',
  },
  {
    template: 'jq -n @',
    payloads: ['$ENV', 'input', 'import "a" as $a; $a', 'include "a"; .', '[inputs]'],
    harmless: '1',
  },
  {
    template: 'find . @',
    payloads: ['-files0-from ../home/.netrc', '-exec cat ../home/.netrc {} +', '-ok touch C ;'],
    harmless: '-type f',
  },
  {
    template: 'git @',
    payloads: [
      'config -f ../home/.netrc -l',
      'blame --contents ../home/.netrc a.txt',
      'grep -f ../home/.netrc',
      'ls-files -X ../home/.netrc',
      'diff --no-index a.txt ../home/.netrc',
      'log --stdin',
      'show HEAD:../home/.netrc',
      'ls-files --exclude-from=../home/.netrc',
      'config --file=../home/.netrc a.b',
      '-c core.pager=./p.sh log',
      'diff a.txt ../home/.netrc',
    ],
    harmless: 'status',
  },
  {
    template: 'sort @',
    payloads: ['--files0-from=../home/.netrc', '-T. a.txt -S1', '--random-source=../home/.netrc a.txt'],
    harmless: 'a.txt',
  },
  {
    template: 'diff @',
    payloads: ['--from-file=../home/.netrc a.txt', '--to-file=../home/.netrc a.txt', '-X../home/.netrc . src'],
    harmless: 'a.txt b.txt',
  },
  {
    template: 'rg a @',
    payloads: ['-f../home/.netrc', '--ignore-file=../home/.netrc', '--pre ./p.sh', '-z .', '--search-zip .'],
    harmless: 'src',
  },
  {
    template: 'tar tf t.tar @',
    payloads: ['-T../home/.netrc', '-X../home/.netrc', '-Ush', '--checkpoint-action=exec=./p.sh'],
    harmless: 'a.txt',
  },
  { template: 'uniq a.txt @', payloads: ['C'], harmless: '-c' },
  { template: 'uniq @', payloads: [...secretWords], harmless: 'a.txt', takesFiles: true },
  { template: 'jq @ a.json', payloads: ['--rawfile a .env', 'include "x";.'], harmless: '.' },
  { template: 'jq . @', payloads: [...secretWords, '--slurpfile'], harmless: 'a.json', takesFiles: true },
  { template: 'diff a.txt @', payloads: secretWords, harmless: 'b.txt', takesFiles: true },
  { template: 'cut -c1-9 @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'od -c @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'base64 @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'strings @', payloads: [...secretWords, '@.env'], harmless: 'a.txt', takesFiles: true },
  {
    template: 'du -a @',
    payloads: ['--files0-from=.env', '--files0-from=../home/.netrc'],
    harmless: 'src',
    takesFiles: true,
  },
  { template: 'file @', payloads: ['-f../home/.netrc', '-C'], harmless: 'a.txt', takesFiles: true },
  { template: 'tail -n 1 @', payloads: secretWords, harmless: 'a.txt', takesFiles: true },
  { template: 'paste a.txt @', payloads: secretWords, harmless: 'b.txt', takesFiles: true },
  { template: 'shuf @', payloads: ['-oC', ...secretWords], harmless: 'a.txt', takesFiles: true },
  { template: 'tar tf @', payloads: ['--to-command=./p.sh', '-I./p.sh'], harmless: 't.tar' },
  { template: 'date @', payloads: ['-s 2020-01-01', '-f../home/.netrc'], harmless: '+%F' },
  { template: 'cat < @', payloads: secretWords, harmless: 'a.txt' },
  { template: 'test -e @', payloads: ['a -o -v a[$(touch${IFS}C)]', 'a[$(touch C)]'], harmless: 'a.txt' },
  { template: '[ @ = 1 ]', payloads: ['-v a[$(touch${IFS}C)] -o a'], harmless: 'a' },
  { template: '[[ @ -eq 1 ]]', payloads: ['a[$(touch C)]'], harmless: '1' },
  { template: 'echo $((@))', payloads: ['a[$(touch C)]'], harmless: '1' },
  { template: 'printf @', payloads: ['-va[$(touch${IFS}C)] x'], harmless: '%s' },
  { template: 'cd @; cat id_rsa .netrc', payloads: ['../home', '../home/.ssh'], harmless: 'src' },
  { template: 'xxd a.txt @', payloads: ['C'], harmless: '-p' },
  { template: 'who @', payloads: ['--lookup', '../home/.netrc'], harmless: '-b' },
  { template: 'findmnt @', payloads: ['-F../home/.netrc', '--tab-file=.env'], harmless: '-l' },
  { template: 'ls @', payloads: ['-la'], harmless: '-l', takesFiles: true },
  { template: 'echo @', payloads: ['x'], harmless: 'x', takesFiles: true },
]

const specialParameters =
  `$! $? $# $$ $- $_ $0 $1 $9 \${10} $@ $* \${@} \${@:1} \${*:1} \${#@} \${#*} \${!#} \${!x} \${!x*} \${!x@} \${#} \${?} \${-} \${_}
  \${!} \${1-} \${1:-} \${1+a} \${x} $x \${x:-} \${x-} \${#x} \${x:0:0} \${x/a/} \${x@Q} \${x^^} $RANDOM $SECONDS $LINENO $BASHPID $PPID $UID $EUID $GROUPS
  $OLDPWD $IFS $OPTARG $OPTIND $OPTERR $REPLY $BASH $SHELLOPTS $BASHOPTS $BASH_VERSION $HOSTNAME $HOSTTYPE $OSTYPE $SHLVL $TERM $USER $LANG
  $PIPESTATUS \${PIPESTATUS[0]} $FUNCNAME $DIRSTACK $EPOCHSECONDS $SRANDOM $BASH_COMMAND $BASH_SUBSHELL $COLUMNS $LINES $PS4 $CDPATH
  $BASH_ARGC $BASH_SOURCE $BASH_EXECUTION_STRING $(:) $(true) \`:\` "" ''`.split(/\s+/)

const globs = [
  '*',
  '*.txt',
  '*/*',
  '?*',
  '[a-z]*',
  './*',
  '*/*/*',
  '-*',
  '.*',
  './.*',
  'src/*',
  'docs/*',
  'fake/*',
  '*/../*',
  '{a,z}.txt',
  '?.txt',
  '[!a]*',
  'x*',
  '*/*/*/*',
  '--*',
]

const producers = [
  'ls',
  'ls -A',
  'ls fake',
  'ls -A fake',
  'ls -a ../odd/fake',
  'ls ../links',
  'find . -type f',
  'find . -type l',
  'find docs -type f',
  'find . -maxdepth 1',
  'find . -type f -print0',
  "find . -name '*x*'",
  "find . -printf '%f\\n'",
  'git ls-files',
  'git ls-files -z',
  'git ls-files -s',
  'git diff --name-only',
  'git ls-tree -r --name-only HEAD',
  'rg --files',
  'rg --files --hidden',
  'rg -l decoy',
  'grep -rl decoy .',
  'grep -l decoy *',
  'echo *',
  "printf '%s\\n' *",
  'cat paths.txt',
  'dirname ../home/.netrc',
  'basename -a fake/.netrc',
  'realpath fake/x',
  'readlink z.txt',
  'git grep -l decoy',
  "echo 'x ../home/.netrc'",
  'seq 3',
  'pwd',
]

const recursive = [
  'grep -rh S3',
  'grep -Rh S3',
  'grep -r a',
  'grep -dr S3',
  'grep -d recurse S3',
  'rg S3',
  'rg -L S3',
  'rg --follow S3',
  'rg --hidden S3',
  'rg -uuu S3',
  'diff -r one',
  'diff -rN two',
  'diff -r',
  'find',
  'find -L',
  'ls -R',
  'ls -RL',
  'du -aL',
  'wc -l',
  'head -n 1',
  'cat',
]

const gitReads = [
  'status',
  'status -s',
  'diff',
  'diff --stat',
  'log -p',
  'log -1',
  'log -p --submodule=diff',
  'show',
  'show HEAD',
  'diff HEAD',
  'diff HEAD~1 HEAD',
  'ls-files -m',
  'ls-files',
  'diff --cached',
  'blame f.txt',
  'grep -h a',
  'log --oneline',
  'branch -a',
  'stash list',
  'describe --always',
  'rev-parse HEAD',
  'diff --submodule=diff HEAD~2 HEAD~1',
  'log -S S3 -p',
  'log -L1,5:.env',
  "grep -h S3 -- '.en?'",
  'diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD',
  'cat-file -p HEAD:.env',
  'show HEAD:./.env',
  'diff --ext-diff',
  'log --format=%G?',
  'shortlog --group=format:%G? HEAD',
  'ls-files -t -m',
  'diff-files -p',
  'diff-index -p HEAD',
  'check-attr -a f.txt',
  'grep S3 HEAD',
  'whatchanged -p',
  'reflog -p',
  'archive HEAD',
]
