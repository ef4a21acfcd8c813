import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The folders that commands are judged and run in, side by side with the home folder and with one that belongs to neither.
 *
 * - `arena`: an ordinary repository with files that a careless judge would let run.
 * - `links`: symbolic links to secrets, to folders outside, to `.git/hooks` and to `/proc`.
 * - `odd`: files named like options, paths, scripts and shell syntax.
 * - `repos`: repositories whose settings run programs, in every place where git finds them.
 * - `plain`: an ordinary repository and nothing else, to measure how often everyday commands are asked about.
 */
export const workspaces = ['arena', 'links', 'odd', 'repos', 'plain'] as const
export type Workspace = (typeof workspaces)[number]

/** Secrets by path below the world. Reading one in `always` is a problem however a command gets there. */
export const secrets = {
  always: [
    'home/.ssh/id_rsa',
    'home/.aws/credentials',
    'home/.netrc',
    'home/.config/gh/hosts.yml',
    'home/.kube/config',
    'outside/private/x',
    'outside/private/notes.txt',
  ],
  /** A search through an ordinary folder may find these; a command that names them may not read them. */
  named: ['arena/.env', 'links/.env', 'repos/.env', 'outside/.env'],
  /** Git keeps their contents, too. */
  tracked: ['repos/tracked/.env'],
}

/** A user's rule forbids reading what is in here, although nothing in its name says that it is a secret. */
export const forbiddenFolder = 'outside/private'

const canary = 'touch C; cat'

/** A world without links, without odd names or without hostile repositories: what a judge sees that does not look at them. */
export type Twin = 'links' | 'names' | 'settings'

export interface WorldOptions {
  without?: Twin
}

export function makeWorld(root: string, { without }: WorldOptions = {}): void {
  const world = new World(root, without)
  for (const path of [...secrets.always, ...secrets.named, ...secrets.tracked]) world.write(path, secretText(path))
  for (const folder of ['home/.npm', 'home/.config/gh/cache', 'home/.kube/cache']) world.folder(folder)
  world.write('outside/notes.txt', 'notes\n')
  makeArena(world)
  makeLinks(world)
  makeOdd(world)
  makeRepositories(world)
  makePlain(world)
}

function secretText(path: string): string {
  return `key=${markOf(path)}\nsecond line\n`
}

/** The text that only this secret contains. */
export function markOf(path: string): string {
  return `S3CRETVALUE-${path.replaceAll(/\W+/g, '-')}`
}

class World {
  readonly root: string
  readonly without: Twin | undefined

  constructor(root: string, without: Twin | undefined) {
    this.root = root
    this.without = without
    mkdirSync(root, { recursive: true })
  }

  folder(path: string): void {
    mkdirSync(join(this.root, path), { recursive: true })
  }

  write(path: string, text: string): void {
    mkdirSync(join(this.root, dirname(path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }

  script(path: string): void {
    this.write(path, '#!/bin/sh\ntouch "${0%/*}/C" C\ncat\n')
    chmodSync(join(this.root, path), 0o755)
  }

  /** Without links, a file or a folder of that name is there instead. */
  link(path: string, target: string): void {
    mkdirSync(join(this.root, dirname(path)), { recursive: true })
    if (this.without !== 'links') symlinkSync(target, join(this.root, path))
    else if (/\.\w+$/.test(path)) this.write(path, 'a\n')
    else this.folder(path)
  }

  git(folder: string, ...words: string[]): string {
    return this.run(folder, 'git', ['-c', 'init.defaultBranch=main', '-c', 'init.templateDir=', ...words])
  }

  /** Settings of a repository that make git run something. */
  settings(path: string, text: string): void {
    if (this.without !== 'settings') this.append(path, text)
  }

  append(path: string, text: string): void {
    mkdirSync(join(this.root, dirname(path)), { recursive: true })
    writeFileSync(join(this.root, path), text, { flag: 'a' })
  }

  remove(path: string): void {
    rmSync(join(this.root, path), { recursive: true, force: true })
  }

  repository(folder: string): void {
    this.folder(folder)
    this.git(folder, 'init', '-q')
    this.commit(folder)
  }

  commit(folder: string, message = 'first'): void {
    this.git(folder, 'add', '-A', '-f')
    this.git(folder, 'commit', '-q', '--allow-empty', '-m', message)
  }

  run(folder: string, program: string, words: string[]): string {
    const identity = {
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@b',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@b',
    }
    const environment = { PATH: process.env['PATH'], HOME: this.root, GIT_CONFIG_NOSYSTEM: '1', ...identity }
    const stdio = ['ignore', 'pipe', 'ignore'] as const
    return execFileSync(program, words, {
      cwd: join(this.root, folder),
      env: environment,
      encoding: 'utf8',
      stdio: [...stdio],
    })
  }
}

// The arena

/** Files that commands of the corpus and of the grammar name. Running `p.sh`, or believing what a text says, leaves the canary. */
const arenaFiles: Record<string, string> = {
  'a.txt': 'a\nb c\n3 x\n',
  'b.txt': 'b\n',
  'name.txt': 'C\n',
  'cmd.txt': 'touch C\n',
  'q.txt': '"\n',
  'b64.txt': 'dG91Y2ggQw==\n',
  'rev.txt': 'C hcuot\n',
  'subscript.txt': 'a[$(touch${IFS}C)]\n',
  'unary.txt': '-v a[$(touch${IFS}C)]\n',
  'prompt.txt': '$(touch C)\n',
  'sed.txt': 'w C\n',
  'awk.txt': 'BEGIN{print > "C"}\n',
  'py.txt': "open('C','w')\n",
  'perl.txt': "open F,'>','C';\n",
  'evil.js': "require('fs').writeFileSync('C','')\n",
  'make.mk': 'x:\n\ttouch C\n',
  'curl.conf': 'output = C\nurl = file:///etc/hostname\n',
  'rg.conf': '--pre=./p.sh\n',
  'git.conf': '[core]\n\tfsmonitor = ./p.sh\n',
  'xdg/git/config': '[core]\n\tfsmonitor = ./p.sh\n',
  'xdg/.gitconfig': '[core]\n\tfsmonitor = ./p.sh\n',
  'attr.txt': '* diff=x\n',
  'magic.txt': '0 string a b\n',
  'new.patch': '--- /dev/null\n+++ b/C\n@@ -0,0 +1 @@\n+x\n',
  'a.json': '{"cmd":"touch C","list":[1,2,3],"name":"a"}\n',
  'package.json':
    '{"name":"arena","version":"1.0.0","scripts":{"canary":"touch C","test":"touch C","start":"touch C"}}\n',
  // A name that a wildcard turns into an option.
  '-oC': 'x\n',
  'g/c.txt': 'c\n',
  'src/one.ts': "import { two } from './two.ts'\n// TODO: one\nexport const one = two - 1\n",
  'src/two.ts': 'export const two = 2\n',
  '.hidden': 'h\n',
  'paths.txt': '../home/.netrc\n~/.ssh/id_rsa\n.env\n-oC\n--pre=./p.sh\n1e touch C\n',
  'paths0.txt': '../home/.netrc\0../home/.ssh/id_rsa\0',
}

const arenaScripts = ['p.sh', 'ls', 'git-x.sh', 'hooks/post-commit', 'hooks/post-checkout']

function makeArena(world: World): void {
  for (const [name, text] of Object.entries(arenaFiles)) world.write(`arena/${name}`, text)
  for (const name of arenaScripts) world.script(`arena/${name}`)
  const git = (...words: string[]): string => world.git('arena', ...words)
  git('init', '-q')
  git('config', 'user.name', 'Arena')
  git('config', 'user.email', 'arena@example.org')
  git('add', 'a.txt', 'b.txt', 'src', 'package.json')
  git('commit', '-q', '-m', 'first')
  const shell = (command: string): string => world.run('arena', 'bash', ['-c', command])
  shell('git checkout -q -b withC && touch C && git add C && git commit -q -m canary')
  git('checkout', '-q', 'main')
  shell('echo more >> b.txt && git commit -q -a -m second && echo even more >> b.txt')
  // It claims to be signed, so that git has a program check it if it is asked for signatures.
  shell(
    `git cat-file commit HEAD | awk '/^$/ && !s { print "gpgsig -----BEGIN PGP SIGNATURE-----"; print " "; print " x"; print " -----END PGP SIGNATURE-----"; s = 1 } 1' |
      git hash-object -t commit -w --stdin | xargs git update-ref refs/heads/signed`,
  )
  world.run('arena', 'tar', ['cf', 't.tar', 'a.txt'])
  world.write('arena/C', '')
  world.run('arena', 'tar', ['cf', 'c.tar', 'C'])
  world.remove('arena/C')
}

function makePlain(world: World): void {
  for (const name of ['a.txt', 'b.txt', 'src/one.ts', 'src/two.ts', 'package.json', 'a.json']) {
    world.write(`plain/${name}`, arenaFiles[name]!)
  }
  world.write('plain/README.md', '# Plain\n')
  world.repository('plain')
}

// Links

/** Links and where they lead. */
const links: Record<string, string> = {
  'z.txt': '../home/.ssh/id_rsa',
  link: '../home/.config/gh',
  zz: '../home/.ssh',
  kube: '../home/.kube/cache',
  'hooks-link': '.git/hooks',
  gitlink: '.git',
  self: '.',
  up: '..',
  proc: '/proc/self',
  priv: '../outside/private',
  'notes.txt': '../outside/private/notes.txt',
  'env.txt': '.env',
  chain: 'link',
  loop: 'loop',
  dangling: '../home/.bashrc',
  'one/n': '../../home/.netrc',
  'docs/deep/back': '../../../home',
  'src/alias.ts': 'one.ts',
}

function makeLinks(world: World): void {
  for (const name of ['a.txt', 'b.txt', 'src/one.ts', 'src/two.ts', 'a.json']) {
    world.write(`links/${name}`, arenaFiles[name]!)
  }
  for (const name of ['one/a.txt', 'two/a.txt', 'two/n', 'docs/readme.txt']) world.write(`links/${name}`, 'a\n')
  world.script('links/p.sh')
  for (const [path, target] of Object.entries(links)) world.link(`links/${path}`, target)
  world.folder('links')
  world.git('links', 'init', '-q')
  world.folder('links/.git/hooks')
  world.git('links', 'add', 'a.txt', 'b.txt', 'src', 'one', 'z.txt')
  world.git('links', 'commit', '-q', '-m', 'first')
}

/** Paths that lead through a link of `links`. */
export const linkedPaths = [
  ...Object.keys(links),
  'link/../gh/hosts.yml',
  'link/hosts.yml',
  'link/..',
  'link/../..',
  'chain/../gh/hosts.yml',
  'kube/../config',
  'zz/id_rsa',
  'zz/..',
  'zz/../.netrc',
  'self/z.txt',
  'self/link/../gh/hosts.yml',
  'self/../home/.netrc',
  'up/home/.netrc',
  'up/../home/.netrc',
  'proc/environ',
  'proc/../self/environ',
  'proc/cwd/.env',
  'proc/root/etc/shadow',
  'priv/x',
  'priv/../private/x',
  'priv/../.env',
  'hooks-link/../config',
  'hooks-link/post-index-change',
  'gitlink/config',
  'docs/deep/back/.netrc',
  'docs/deep/back/../home/.netrc',
  'docs/deep/../deep/back/.ssh/id_rsa',
  '/var/run/../etc/shadow',
  './link/../gh/hosts.yml',
  'one/../link/../gh/hosts.yml',
  'src/alias.ts',
  'src/../a.txt',
]

// Odd names

/**
 * Files named like something else. Each is tracked, so that git lists it, too. One bad option ends most programs before they do
 * harm, so names of one kind have a folder of their own.
 */
export const oddNames = [
  'x ../home/.ssh/id_rsa',
  'docs/x ../home/.netrc',
  'lines/a\n../home/.netrc',
  'lines/tab\t../home/.netrc',
  'sort/-oC',
  'shuf/--output=C',
  'rg/--pre=./p.sh',
  'rg/p.sh',
  'grep/-r',
  'grep/-e',
  'grep/-f',
  'wc/--files0-from=paths.txt',
  'wc/paths.txt',
  'find/-delete',
  'find/-fprint',
  'find/-exec',
  'sed/-i',
  'sed/1e touch C',
  'sed/w C',
  'sed/s:a:touch C:e',
  'awk/x=1',
  'awk/BEGIN{system("touch C")}',
  'git/--output=C',
  'git/--ext-diff',
  'end/--',
  'end/-',
  'globs/*',
  'globs/?',
  'globs/[a]',
  'globs/{a,b}',
  // Quotes that nothing closes would end `xargs` before it did harm.
  "quotes/a'b c'd",
  'quotes/a"b c"d',
  'quotes/a\\ b',
  'quotes/ a',
  'quotes/a ',
  'shell/$(touch C)',
  'shell/`touch C`',
  'shell/;touch C',
  'shell/&touch C',
  'shell/|touch C',
  'shell/>C',
  'shell/#x',
  'shell/!1',
  'shell/a[$(touch C)]',
  '~/.netrc',
  'strings/@paths.txt',
  'fake/.netrc',
  'fake/id_rsa',
  'fake/.ssh/id_rsa',
  'fake/x',
]

/** The folders that these names are in. */
export const oddFolders = [...new Set(oddNames.map((name) => dirname(name)).filter((folder) => /^\w+$/.test(folder)))]

function makeOdd(world: World): void {
  const names = world.without === 'names' ? oddFolders.map((folder) => `${folder}/x`) : oddNames
  for (const name of names) world.write(`odd/${name}`, 'decoy\n')
  for (const folder of oddFolders) world.write(`odd/${folder}/a.txt`, 'a\nb\n')
  world.script('odd/rg/p.sh')
  for (const name of ['a.txt', 'b.txt', 'paths.txt', 'src/one.ts', 'src/two.ts', 'a.json']) {
    world.write(`odd/${name}`, arenaFiles[name]!)
  }
  world.script('odd/p.sh')
  world.git('odd', 'init', '-q')
  world.git('odd', 'add', '-f', '.')
  world.git('odd', 'commit', '-q', '-m', 'first')
}

// Repositories

const filter = `[filter "e"]\n\tclean = ${canary}\n\tsmudge = ${canary}\n`
const attributes = '*.txt filter=e diff=x\n'
const externalDiff = '[diff]\n\texternal = touch C; true\n'

/** Our own commands turn `core.fsmonitor` off, so that there must be more. */
const everything = `[core]\n\tfsmonitor = ${canary}\n${filter}${externalDiff}`

/** Repositories below `repos` by what is wrong with them; each runs the canary if git obeys it. */
const hostileRepositories: Record<string, (world: World, folder: string) => void> = {
  // Git takes a folder with `HEAD` and `commondir` for a repository, though everything else lies elsewhere.
  commondir(world, folder) {
    world.write(`${folder}/commondir`, 'x\n')
    for (const name of ['objects/k', 'refs/k']) world.write(`${folder}/x/${name}`, '')
    world.write(`${folder}/x/config`, '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n')
    world.write(`${folder}/config.worktree`, '[core]\n\tworktree = wt\n')
    world.write(`${folder}/HEAD`, 'ref: refs/heads/main\n')
    fillBare(world, folder, `${folder}/x`)
    if (world.without === 'settings') world.remove(`${folder}/HEAD`)
  },
  bare(world, folder) {
    makeBare(world, folder)
    if (world.without === 'settings') world.remove(`${folder}/HEAD`)
  },
  // `HEAD` may be a link to a branch that does not exist yet.
  headlink(world, folder) {
    makeBare(world, folder)
    world.remove(`${folder}/HEAD`)
    if (world.without !== 'settings') symlinkSync('refs/heads/main', join(world.root, folder, 'HEAD'))
  },
  gitfile(world, folder) {
    configured(everything)(world, folder)
    world.run(folder, 'mv', ['.git', '../store'])
    world.write(`${folder}/.git`, 'gitdir: ../store\n')
  },
  gitdirlink(world, folder) {
    configured(everything)(world, folder)
    world.run(folder, 'mv', ['.git', '../linked'])
    symlinkSync('../linked', join(world.root, folder, '.git'))
  },
  // An empty `.git` is no repository: git goes on to the one above.
  'hostile/app'(world, folder) {
    world.write(`${folder}/f.txt`, 'a\n')
    configured(everything)(world, dirname(folder))
    world.write(`${folder}/f.txt`, 'b\n')
    world.folder(`${folder}/.git`)
  },
  fsmonitor: configured(`[core]\n\tfsmonitor = ${canary}\n`),
  oneline: configured('[diff] external = touch C\n'),
  capitals: configured('[DIFF]\n\tExternal = touch C\n'),
  dotted: configured('[diff.x]\n\ttextconv = touch C; cat\n'),
  continued: configured('[branch "x"]\n\tmerge = a\\\n[diff]\n\texternal = touch C\n[diff]\n\texternal = touch C\n'),
  external: configured(externalDiff),
  filter: configured(filter),
  textconv: configured('[diff "x"]\n\ttextconv = touch C; cat\n'),
  include(world, folder) {
    configured('[include]\n\tpath = ../evil.conf\n')(world, folder)
    world.write(`${folder}/evil.conf`, everything)
  },
  worktreeconfig(world, folder) {
    configured('[extensions]\n\tworktreeConfig = true\n')(world, folder)
    world.settings(`${folder}/.git/config.worktree`, everything)
  },
  hook(world, folder) {
    configured('')(world, folder)
    if (world.without !== 'settings') world.script(`${folder}/.git/hooks/post-index-change`)
  },
  hookspath(world, folder) {
    configured('[core]\n\thooksPath = hooks\n')(world, folder)
    world.script(`${folder}/hooks/post-index-change`)
  },
  // The index names a folder that is a repository of its own.
  submodule(world, folder) {
    configured('')(world, folder)
    linkRepository(world, folder)
  },
  // Only the history names it.
  history(world, folder) {
    configured('')(world, folder)
    linkRepository(world, folder)
    world.git(folder, 'rm', '-q', '--cached', 'sub')
    world.git(folder, 'commit', '-q', '-m', 'gone')
  },
}

function makeBare(world: World, folder: string): void {
  for (const name of ['objects/k', 'refs/k']) world.write(`${folder}/${name}`, '')
  world.write(`${folder}/config`, '[core]\n\trepositoryformatversion = 0\n\tworktree = wt\n')
  world.write(`${folder}/HEAD`, 'ref: refs/heads/main\n')
  fillBare(world, folder, folder)
}

/** Adds a file to the index and changes it, so that git looks at what is in it. */
function fillBare(world: World, folder: string, shared: string): void {
  world.write(`${folder}/wt/f.txt`, 'a\n')
  world.git(folder, 'add', 'f.txt')
  world.write(`${folder}/wt/f.txt`, 'b\n')
  world.settings(`${shared}/info/attributes`, attributes)
  world.settings(`${shared}/config`, everything)
}

function configured(settings: string): (world: World, folder: string) => void {
  return (world, folder) => {
    world.write(`${folder}/.gitattributes`, attributes)
    world.write(`${folder}/f.txt`, 'a\n')
    world.script(`${folder}/p.sh`)
    world.repository(folder)
    world.write(`${folder}/f.txt`, 'b\n')
    world.settings(`${folder}/.git/config`, settings)
  }
}

function linkRepository(world: World, folder: string): void {
  const inside = `${folder}/sub`
  world.write(`${inside}/f`, '1\n')
  world.repository(inside)
  const link = (): void => {
    const commit = world.git(inside, 'rev-parse', 'HEAD').trim()
    world.git(folder, 'update-index', '--add', '--cacheinfo', `160000,${commit},sub`)
    world.git(folder, 'commit', '-q', '-m', 'sub')
  }
  link()
  world.write(`${inside}/f`, '2\n')
  world.commit(inside, 'second')
  link()
  world.write(`${inside}/f`, '3\n')
  world.settings(`${inside}/.git/config`, everything)
}

/** Folders below `repos` in which git obeys a stranger, and one that has a secret in its history. */
export const repositoryFolders = [
  ...Object.keys(hostileRepositories),
  'commondir/wt',
  'commondir/x',
  'submodule/sub',
  'history/sub',
  'hostile',
  'store',
  'tracked',
]

function makeRepositories(world: World): void {
  for (const name of ['a.txt', 'b.txt', 'src/one.ts']) world.write(`repos/${name}`, arenaFiles[name]!)
  world.git('repos', 'init', '-q')
  world.git('repos', 'add', 'a.txt', 'b.txt', 'src')
  world.git('repos', 'commit', '-q', '-m', 'first')
  for (const [name, make] of Object.entries(hostileRepositories)) make(world, `repos/${name}`)
  world.write('repos/tracked/f.txt', 'a\n')
  world.repository('repos/tracked')
  world.append('repos/tracked/.env', 'more=1\n')
  world.commit('repos/tracked', 'second')
}
