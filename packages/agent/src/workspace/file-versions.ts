import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { fieldsOf, gitFailure, nulSeparated, textOf, type ShadowGit } from './shadow-git.ts'

/** One path that differs between two trees. A missing side means that there is no file. */
export interface FileChange {
  path: string
  from?: FileVersion
  to?: FileVersion
}

export interface FileVersion {
  mode: 'file' | 'executable' | 'link'
  /** The id of a git blob. */
  id: string
}

/**
 * One sync for all trees. Not in the settings: together with files that are streamed into a pack, git 2.39 loses the pack
 * if it has to store a link or an empty file before.
 */
export const writeTree = ['-c', 'core.fsyncMethod=batch', 'write-tree', '--missing-ok']

/** Git does not compare the lines of files that count as large. */
const asText = ['-c', 'core.bigFileThreshold=5m']

/** The stored trees and file versions: what they are, how they differ, and new ones made of them. */
export class FileVersions {
  readonly #git: ShadowGit

  /** @internal */
  constructor(git: ShadowGit) {
    this.#git = git
  }

  /** The length of an id of a tree or a file version. */
  get idLength(): number {
    return this.#git.idLength
  }

  /** What has to change to get from one tree to another, sorted by path. */
  async diff(from: string, to: string): Promise<FileChange[]> {
    return (await this.diffs([{ from, to }]))[0] ?? []
  }

  /** The same for several pairs. */
  async diffs(pairs: readonly { from: string; to: string }[]): Promise<FileChange[][]> {
    const input = pairs.map(({ from, to }) => `${from} ${to}\n`).join('')
    const command = ['diff-tree', '--stdin', '-r', '-z', '--raw', '--no-renames', '--no-abbrev']
    const fields = textOf((await this.#git.run(command, { input })).output).split('\0')
    const all: FileChange[][] = []
    for (let index = 0; index < fields.length; index += 1) {
      // The ids of each pair stand in a line of their own, before its first change.
      let field = fields[index] ?? ''
      for (let pair; (pair = /^[0-9a-f]{40,64} [0-9a-f]{40,64}\n/.exec(field)); field = field.slice(pair[0].length))
        all.push([])
      const [modeFrom = '', modeTo = '', idFrom = '', idTo = ''] = field.slice(1).split(' ')
      if (!field.startsWith(':')) continue
      const path = fields[++index] ?? ''
      const before = versionOf(modeFrom, idFrom)
      const after = versionOf(modeTo, idTo)
      all.at(-1)?.push({ path, ...(before && { from: before }), ...(after && { to: after }) })
    }
    return all
  }

  /** All paths of a tree. */
  async paths(tree: string): Promise<string[]> {
    return fieldsOf((await this.#git.run(['ls-tree', '-r', '-z', '--name-only', '--full-tree', tree])).output)
  }

  /** How many lines each path gained and lost, sorted by path; undefined for files that are not text. */
  async lineCounts(from: string, to: string): Promise<Map<string, { added: number; removed: number } | undefined>> {
    const command = [...asText, 'diff-tree', '-r', '-z', '--numstat', '--no-renames', from, to]
    const { output } = await this.#git.run(command, { variables: this.#git.borrowing })
    return new Map(
      fieldsOf(output).map((record) => {
        const [added = '', removed = '', ...path] = record.split('\t')
        const isText = added !== '-'
        return [path.join('\t'), isText ? { added: Number(added), removed: Number(removed) } : undefined]
      }),
    )
  }

  /** Unified diffs of these paths, or of all, one after the other. Cut after so many bytes. */
  async patch(
    from: string,
    to: string,
    { paths = [], maxBytes }: { paths?: readonly string[]; maxBytes: number },
  ): Promise<{ patch: string; isCut: boolean }> {
    const diff = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', '--full-index']
    const ran = await this.#git.run([...asText, ...diff, from, to, '--', ...paths], {
      variables: this.#git.borrowing,
      maxBytes,
    })
    return { patch: textOf(ran.output), isCut: ran.isCut }
  }

  /** Writes files of a tree below a folder inside of the working tree, which must not exist yet. */
  async extract(tree: string, paths: readonly string[], folder: string): Promise<void> {
    const into = `${relative(this.#git.root, folder).split(sep).join('/')}/`
    await this.#git.withIndex(async (variables) => {
      await this.#git.run(['read-tree', tree], { variables })
      await this.#git.run(['checkout-index', '-z', '--stdin', `--prefix=${into}`], {
        variables: { ...variables, ...this.#git.borrowing },
        input: nulSeparated(paths),
      })
    })
  }

  /** The bytes of a file version. */
  async read(id: string): Promise<Buffer> {
    return (await this.#git.run(['cat-file', 'blob', id], { variables: this.#git.borrowing })).output
  }

  /** Stores bytes as a file version. */
  async write(bytes: Buffer): Promise<string> {
    return textOf(
      (await this.#git.run(['hash-object', '-w', '--no-filters', '--stdin'], { input: bytes })).output,
    ).trim()
  }

  /** A merge of three versions of a text; undefined if two of them changed the same lines, or one is no text. */
  async merge(versions: { current: string; base: string; other: string }): Promise<Buffer | undefined> {
    const names = ['current', 'base', 'other'] as const
    const files = names.map(() => this.#git.temporary())
    try {
      for (const [index, name] of names.entries())
        await writeFile(files[index] ?? '', await this.read(versions[name]), { mode: 0o600 })
      const ran = await this.#git.try(['merge-file', '-p', '-q', ...files])
      return ran.type === 'ran' ? ran.output : undefined
    } finally {
      for (const file of files) await rm(file, { force: true })
    }
  }

  /** Whether the store has a file version. */
  async hasVersion(id: string): Promise<boolean> {
    return (await this.#git.try(['cat-file', '-e', id], { variables: this.#git.borrowing })).type === 'ran'
  }

  /** A tree with some paths replaced or removed. */
  async withFiles(tree: string, files: ReadonlyMap<string, FileVersion | undefined>): Promise<string> {
    const zero = '0'.repeat(tree.length)
    const lines = [...files].map(([path, version]) =>
      version ? `${gitModes[version.mode]} ${version.id}\t${path}\0` : `0 ${zero}\t${path}\0`,
    )
    return this.#git.withIndex(async (variables) => {
      await this.#git.run(['read-tree', tree], { variables })
      await this.#git.run(['update-index', '-z', '--index-info'], { variables, input: lines.join('') })
      return textOf((await this.#git.run(writeTree, { variables })).output).trim()
    })
  }

  /** The version of a path in a tree; undefined if there is no such file. */
  async versionAt(tree: string, path: string): Promise<FileVersion | undefined> {
    const { output } = await this.#git.run(['ls-tree', '-z', '--full-tree', tree, '--', path])
    const [, mode = '', id = ''] = /^(\d+) blob ([0-9a-f]+)\t/.exec(textOf(output)) ?? []
    return versionOf(mode, id)
  }

  /** The paths that the ignore files in the workspace would leave out; or those in a tree, if they differ. */
  async ignored(paths: readonly string[], tree?: string): Promise<Set<string>> {
    if (tree === undefined) return this.#checkIgnore(paths, {})
    const folder = this.#git.temporary()
    try {
      await mkdir(folder)
      await this.#writeIgnoreFiles(tree, folder)
      return await this.#git.withIndex((variables) => this.#checkIgnore(paths, { ...variables, GIT_WORK_TREE: folder }))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  async #writeIgnoreFiles(tree: string, folder: string): Promise<void> {
    const { output } = await this.#git.run(['ls-tree', '-r', '-z', '--full-tree', tree])
    const found = fieldsOf(output).flatMap((line) => {
      const [, id, path] = /^100\d+ blob ([0-9a-f]+)\t((?:.*\/)?\.gitignore)$/s.exec(line) ?? []
      return id === undefined || path === undefined ? [] : [{ id, path }]
    })
    if (found.length === 0) return
    const input = found.map(({ id }) => `${id}\n`).join('')
    const { output: contents } = await this.#git.run(['cat-file', '--batch'], { variables: this.#git.borrowing, input })
    let start = 0
    for (const { path } of found) {
      // `<id> blob <size>`, a line end, the content, a line end.
      const from = contents.indexOf(10, start) + 1
      const size = Number(textOf(contents.subarray(start, from)).trim().split(' ')[2])
      if (!Number.isSafeInteger(size)) throw new Error(`The snapshot of the files has lost ${path}.`)
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), contents.subarray(from, from + size))
      start = from + size + 1
    }
  }

  async #checkIgnore(paths: readonly string[], variables: Record<string, string>): Promise<Set<string>> {
    // This command knows no literal paths. With a folder in front, none has a special meaning.
    const input = nulSeparated(paths.map((path) => `./${path}`))
    const options = { variables: { ...variables, GIT_LITERAL_PATHSPECS: '0' }, input }
    const ran = await this.#git.try(['check-ignore', '-z', '--no-index', '--stdin'], options)
    if (ran.type === 'failed' && ran.exitCode !== 1) throw gitFailure(ran)
    return new Set(fieldsOf(ran.output).map((path) => path.slice('./'.length)))
  }

  /** True if a tree and everything in it can be read. */
  async has(tree: string): Promise<boolean> {
    const command = ['rev-list', '--objects', '--no-object-names', '--quiet', tree]
    return (await this.#git.try(command, { variables: this.#git.borrowing })).type === 'ran'
  }
}

const gitModes = { file: '100644', executable: '100755', link: '120000' } as const

function versionOf(mode: string, id: string): FileVersion | undefined {
  const found = Object.entries(gitModes).find(([, each]) => each === mode)
  return found && { mode: found[0] as FileVersion['mode'], id }
}
