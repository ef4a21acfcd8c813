import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
  chmodSync,
} from 'node:fs'
import { join } from 'node:path'

/** The kinds of folders that are tried. `hostile` repositories name programs that git would run. */
export const workspaceKinds = ['plain', 'git', 'hostile', 'subfolder', 'sha256'] as const
export type WorkspaceKind = (typeof workspaceKinds)[number]

/** One folder of each kind, to be copied for each history. */
export class Templates {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Those that another process has made. */
  static at(folder: string): Templates {
    return new Templates(folder)
  }

  static make(folder: string): Templates {
    for (const kind of workspaceKinds) {
      const root = join(folder, kind)
      mkdirSync(root, { recursive: true })
      writeFiles(root)
      if (kind === 'plain') continue
      git(root, 'init', '--quiet', '--template=', ...(kind === 'sha256' ? ['--object-format=sha256'] : []))
      git(root, 'add', '--all')
      git(root, '-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message', 'first')
      if (kind === 'hostile') plantPrograms(root)
    }
    return new Templates(folder)
  }

  /** Copies a folder. Returns the workspace in it. */
  copy(kind: WorkspaceKind, to: string): { root: string; workspace: string } {
    cpSync(join(this.#folder, kind), to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
    return { root: to, workspace: kind === 'subfolder' ? join(to, 'sub') : to }
  }
}

function git(root: string, ...command: string[]): void {
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  execFileSync('git', ['-C', root, ...command], { env, stdio: 'ignore' })
}

function writeFiles(root: string): void {
  mkdirSync(join(root, 'sub', 'deep'), { recursive: true })
  mkdirSync(join(root, 'src'))
  writeFileSync(join(root, '.gitignore'), 'out/\n*.log\n')
  writeFileSync(join(root, 'src', 'a.ts'), 'export const a = 1\n')
  writeFileSync(join(root, 'src', 'crlf.txt'), 'one\r\ntwo\r\n')
  writeFileSync(join(root, 'sub', 'b.ts'), 'export const b = 2\n')
  writeFileSync(join(root, 'sub', 'deep', 'c.bin'), Buffer.from([0, 1, 2, 255]))
  writeFileSync(join(root, 'sub', 'pointer.psd'), 'version https://git-lfs.example/spec/v1\noid sha256:00\nsize 1\n')
  writeFileSync(join(root, 'sub', 'run.sh'), '#!/bin/sh\n')
  chmodSync(join(root, 'sub', 'run.sh'), 0o755)
}

/** A filter, a watcher, a diff driver and hooks, each of which leaves a file. */
function plantPrograms(root: string): void {
  const canary = join(root, '.git', 'canary')
  const program = join(root, '.git', 'program')
  writeFileSync(program, `#!/bin/sh\necho "$0" >> '${canary}'\ncat\n`)
  chmodSync(program, 0o755)
  writeFileSync(join(root, '.gitattributes'), '* filter=evil diff=evil text eol=lf\n*.ts ident\n')
  for (const [name, value] of Object.entries({
    'filter.evil.clean': program,
    'filter.evil.smudge': program,
    'filter.evil.process': program,
    'diff.evil.textconv': program,
    'diff.external': program,
    'core.fsmonitor': program,
  }))
    git(root, 'config', name, value)
  for (const hook of ['post-index-change', 'post-checkout', 'pre-commit', 'reference-transaction']) {
    mkdirSync(join(root, '.git', 'hooks'), { recursive: true })
    writeFileSync(join(root, '.git', 'hooks', hook), readFileSync(program))
    chmodSync(join(root, '.git', 'hooks', hook), 0o755)
  }
}

/** The program of a planted setting leaves this file beside it; copies name the folder of the template. */
export function canaryOf(templates: string): string {
  return join(templates, 'hostile', '.git', 'canary')
}

export type Files = ReadonlyMap<string, string>

export function isEqual(left: Files, right: Files): boolean {
  return left.size === right.size && [...left].every(([path, content]) => right.get(path) === content)
}

/** Files that no snapshot holds: ignored, secret or large. */
export function isLeftOut(path: string): boolean {
  return /(?:^|\/)out\/|\.log$|(?:^|\/)\.env$|(?:^|\/)large-/.test(path)
}

interface FoundFile {
  path: string
  isLink: boolean
}

/** Every file below a folder. Folders and what belongs to git are not files. */
export function filesBelow(folder: string, below = '', files: FoundFile[] = []): FoundFile[] {
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.name === '.git') continue
    if (entry.isDirectory()) filesBelow(folder, path, files)
    else if (entry.isSymbolicLink() || entry.isFile()) files.push({ path, isLink: entry.isSymbolicLink() })
  }
  return files
}

/** The files below a folder by path, with their kind and content; only those that are wanted are read. */
export function readFiles(folder: string, isWanted: (path: string) => boolean = () => true): Map<string, string> {
  const files = new Map<string, string>()
  for (const { path, isLink } of filesBelow(folder)) {
    if (!isWanted(path)) continue
    const place = `${folder}/${path}`
    if (isLink) files.set(path, `link ${readlinkSync(place)}`)
    else {
      const isExecutable = (lstatSync(place).mode & 0o100) !== 0
      files.set(path, `${isExecutable ? 'executable' : 'file'} ${readFileSync(place, 'latin1')}`)
    }
  }
  return files
}

/** A digest of everything in all git folders, times included. */
export function gitFingerprint(folder: string): string {
  const hash = createHash('sha256')
  const visit = (path: string, isGit: boolean): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const inside = join(path, entry.name)
      const belongs = isGit || entry.name === '.git'
      if (belongs) {
        const { mode, size, mtimeMs } = lstatSync(inside)
        hash.update(`${inside}\0${mode}\0${size}\0${mtimeMs}\0`)
        if (entry.isFile()) hash.update(readFileSync(inside))
      }
      if (entry.isDirectory()) visit(inside, belongs)
    }
  }
  visit(folder, false)
  return hash.digest('hex')
}
