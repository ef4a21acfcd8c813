import { constants, readFileSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { hashOf, type Repository } from '../permissions/shell/programs/git-repository.ts'
import { runGit, type GitResult } from './run-git.ts'

export interface ShadowGitOptions {
  /** The folder of the store. */
  path: string
  /** The store with the versions, if this is that of a working copy. */
  versions?: string
  /** The working tree. */
  root: string
  /** The user's repository. */
  repository?: Repository
  clock?: Clock
  environment?: Readonly<Record<string, string | undefined>>
}

export interface GitOptions {
  variables?: Record<string, string>
  input?: string | Buffer
  /** Cuts the output. */
  maxBytes?: number
}

type Ran = Extract<GitResult, { type: 'ran' }>

/** There are no snapshots of this workspace. The message is a sentence. */
export class SnapshotsOff extends Error {
  override readonly name = 'SnapshotsOff'
}

/** Older versions read the user's settings, whatever they are told. */
const oldestGit = [2, 32] as const
const limitMs = 10 * 60_000
const maxOutputBytes = 512 * 1024 ** 2
const maxAttempts = 20
/** A temporary file that is older was left by a process that was killed. */
const abandonedMs = 60 * 60_000

const settings = {
  'core.bare': 'false',
  // Git reads files up to 32 KiB and streams larger ones. It would map those in between into memory, where a file that
  // shrinks kills it.
  'core.bigFileThreshold': '32k',
  'core.compression': '1',
  // The index is synced once, when it gets its name.
  'core.fsync': 'all,-index',
  'core.autocrlf': 'false',
  'core.fileMode': 'true',
  'core.ignoreCase': 'false',
  'core.logAllRefUpdates': 'false',
  'gc.auto': '0',
  'index.version': '4',
}

/** The bytes of a file are stored as they are: these attributes override those of the workspace. */
const attributes = '* -text -eol -crlf -ident -filter -working-tree-encoding\n'

/**
 * A git repository of our own, whose working tree is the workspace. It has its own settings, so that nothing which the
 * user or the workspace configures runs or applies.
 */
export class ShadowGit {
  readonly path: string
  /** The store with the versions: this one, or that of the workspace of which this is a working copy. */
  readonly versions: string
  readonly root: string
  readonly repository: Repository | undefined
  readonly clock: Clock
  readonly environment: ShadowGitOptions['environment']

  constructor({ path, versions = path, root, repository, clock = systemClock, environment }: ShadowGitOptions) {
    this.path = path
    this.versions = versions
    this.root = root
    this.repository = repository
    this.clock = clock
    this.environment = environment
  }

  /** Objects and packs are in here. */
  get objects(): string {
    return join(this.versions, 'git', 'objects')
  }

  /** The length of an id of a tree or a file version. */
  get idLength(): number {
    return this.repository && hashOf(this.repository).bytes === 32 ? 64 : 40
  }

  /** Makes the repository, if there is none yet. */
  async create(): Promise<void> {
    const git = join(this.path, 'git')
    for (const folder of ['objects/pack', 'objects/info', 'refs', 'info'])
      await mkdir(join(git, folder), { recursive: true, mode: 0o700 })
    await writeIfDifferent(join(git, 'info', 'attributes'), attributes)
    await writeIfDifferent(join(git, 'config'), configText(this.repository))
    await writeIfDifferent(join(git, 'HEAD'), 'ref: refs/heads/none\n')
    await this.#removeAbandoned()
  }

  /** A name for a temporary file in the store. */
  temporary(): string {
    return join(this.path, `temporary-${crypto.randomUUID()}`)
  }

  async run(command: readonly string[], options: GitOptions = {}): Promise<Ran> {
    return orThrow(await this.try(command, options))
  }

  try(command: readonly string[], { variables, input, maxBytes }: GitOptions = {}): Promise<GitResult> {
    const own = { GIT_DIR: join(this.versions, 'git'), GIT_WORK_TREE: this.root, ...variables }
    return runGit(command, {
      ...this.#options(),
      variables: own,
      ...(input !== undefined && { input }),
      ...(maxBytes !== undefined && { maxBytes }),
    })
  }

  /** Git reads files whenever it writes an index, and fails if one becomes shorter meanwhile. */
  async tryBesideEditors(command: readonly string[], options: GitOptions): Promise<GitResult> {
    for (let attempt = 1; ; attempt += 1) {
      const ran = await this.try(command, options)
      const isHit = ran.type === 'failed' && /failed to read|short read|file changed/.test(ran.message)
      if (!isHit || attempt === maxAttempts) return ran
    }
  }

  async runBesideEditors(command: readonly string[], options: GitOptions): Promise<Ran> {
    return orThrow(await this.tryBesideEditors(command, options))
  }

  /** Runs git with a temporary index, which is removed afterwards. */
  async withIndex<T>(work: (variables: { GIT_INDEX_FILE: string }) => Promise<T>): Promise<T> {
    const index = this.temporary()
    try {
      return await work({ GIT_INDEX_FILE: index })
    } finally {
      await rm(index, { force: true })
      await rm(`${index}.lock`, { force: true })
    }
  }

  /** The tree of the first snapshot, while its file versions are only in the user's repository, and their folder. */
  get borrowed(): { tree: string; objects: string } | undefined {
    const [tree = '', objects = ''] = textAt(join(this.versions, 'borrowed')).split('\n')
    return tree === '' ? undefined : { tree, objects }
  }

  /** Variables with which git also finds the file versions that are borrowed. */
  get borrowing(): Record<string, string> {
    const { borrowed } = this
    return borrowed ? { GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.objects } : {}
  }

  /** The patterns that the user ignores everywhere. */
  async globalExcludes(): Promise<string> {
    const run = { ...this.#options(), ignoreUser: false }
    const ran = await runGit(['config', '--global', '--type=path', '--get', 'core.excludesFile'], run)
    const environment = this.environment ?? process.env
    const configHome = environment['XDG_CONFIG_HOME'] ?? join(environment['HOME'] ?? homedir(), '.config')
    const named = ran.type === 'ran' ? textOf(ran.output).trim() : ''
    return textAt(named === '' ? join(configHome, 'git', 'ignore') : named)
  }

  /** Throws `SnapshotsOff` if git cannot be used. */
  async requireGit(): Promise<void> {
    const version = await gitVersion(this.#options())
    if (version === undefined) throw new SnapshotsOff('There are no file snapshots, because git is not installed.')
    if (isOlder(version))
      throw new SnapshotsOff(
        `There are no file snapshots, because git ${version} is too old. Install ${oldestGit.join('.')} or newer.`,
      )
  }

  /** What killed processes left: indexes here, and objects that git had begun to write. */
  async #removeAbandoned(): Promise<void> {
    const before = Date.now() - abandonedMs
    const places = [
      { folder: this.path, pattern: /^(?:temporary|taking)-/ },
      { folder: join(this.objects, 'pack'), pattern: /^tmp_/ },
    ]
    for (const { folder, pattern } of places)
      for (const name of await readdir(folder)) {
        const place = join(folder, name)
        const isOld = async (): Promise<boolean> => ((await stat(place).catch(() => undefined))?.ctimeMs ?? 0) < before
        if (pattern.test(name) && (await isOld())) await rm(place, { recursive: true, force: true })
      }
  }

  #options(): Omit<Parameters<typeof runGit>[1], 'input'> {
    return {
      cwd: this.root,
      root: this.root,
      clock: this.clock,
      limitMs,
      maxBytes: maxOutputBytes,
      ignoreUser: true,
      ...(this.environment && { environment: this.environment }),
    }
  }
}

const versions = new Map<string, Promise<string | undefined>>()

/** The version of git; undefined if there is none. Asked once for each search path. */
function gitVersion(options: Parameters<typeof runGit>[1]): Promise<string | undefined> {
  const path = (options.environment ?? process.env)['PATH'] ?? ''
  const known = versions.get(path)
  if (known) return known
  const asked = runGit(['version'], options).then((ran) => {
    const [version] = /\d+(?:\.\d+)+/.exec(ran.type === 'ran' ? textOf(ran.output) : '') ?? []
    // It may be installed later.
    if (version === undefined) versions.delete(path)
    return version
  })
  versions.set(path, asked)
  return asked
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < oldestGit[0] || (major === oldestGit[0] && minor < oldestGit[1])
}

function configText(repository: Repository | undefined): string {
  const isLong = repository !== undefined && hashOf(repository).bytes === 32
  const extension = isLong ? '[extensions]\n\tobjectFormat = sha256\n' : ''
  const lines = Object.entries(settings).map(([name, value]) => {
    const [section, key] = name.split('.')
    return `[${section}]\n\t${key} = ${value}\n`
  })
  return `[core]\n\trepositoryFormatVersion = ${isLong ? 1 : 0}\n${extension}${lines.join('')}`
}

function orThrow(ran: GitResult): Ran {
  if (ran.type === 'failed') throw gitFailure(ran)
  return ran
}

export function gitFailure(ran: Extract<GitResult, { type: 'failed' }>): Error {
  const [firstLine = ''] = ran.message.split('\n', 1)
  const reason = ran.message === '' ? 'It is missing, or took too long.' : `It said: ${firstLine.slice(0, 300)}`
  return new Error(`The snapshot of the files failed, because git did. ${reason}`)
}

/** A file that git may be reading for another process, or for a working copy. */
export async function writeIfDifferent(file: string, content: string): Promise<void> {
  if (textAt(file) === content) return
  const written = `${file}-${crypto.randomUUID()}`
  await writeFile(written, content)
  await rename(written, file)
}

export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}

export function textOf(bytes: Buffer): string {
  return bytes.toString('utf8')
}

/** Empty if there is no such file. */
export function textAt(file: string): string {
  try {
    return readFileSync(file, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NONBLOCK })
  } catch {
    return ''
  }
}

/** The fields of output with `-z`. */
export function fieldsOf(output: Buffer): string[] {
  const fields = textOf(output).split('\0')
  if (fields.at(-1) === '') fields.pop()
  return fields
}

export function nulSeparated(paths: readonly string[]): string {
  return paths.map((path) => `${path}\0`).join('')
}
