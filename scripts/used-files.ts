// The files of the repository that a program uses: what it imports, the programs it starts and the files it reads.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { targetsOf, withSlashes } from './import-graph.ts'

/** Finds the files that entries use. One instance serves many entries and reads each file once. */
export class UsedFiles {
  #tracked: Set<string>
  #folders: Set<string>
  #edges = new Map<string, string[]>()

  constructor(tracked: readonly string[] = trackedFiles()) {
    this.#tracked = new Set(tracked)
    this.#folders = foldersOf(tracked)
  }

  /** Files of the repository by their path. */
  matching(pattern: RegExp): string[] {
    return [...this.#tracked].filter((file) => pattern.test(file))
  }

  /** Each used file with its distance: 0 for the entry, 1 for what the entry names, and so on. */
  of(entry: string): Map<string, number> {
    const distances = new Map([[entry, 0]])
    for (const helper of this.#filesIn(entry.replace(/\.ts$/, ''))) distances.set(helper, 1)
    // A map iterates over what is added meanwhile, so this visits files breadth first.
    for (const [file, distance] of distances) {
      for (const next of this.#edgesOf(file)) if (!distances.has(next)) distances.set(next, distance + 1)
    }
    return distances
  }

  #edgesOf(file: string): string[] {
    let edges = this.#edges.get(file)
    if (edges === undefined) {
      edges = /\.[cm]?[jt]s$/.test(file) && this.#tracked.has(file) ? this.#find(file) : []
      this.#edges.set(file, edges)
    }
    return edges
  }

  /** Reads the text without its comments; parsing everything would take seconds. */
  #find(file: string): string[] {
    const text = readFileSync(file, 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '')
    const imports = text.matchAll(/\b(?:from|import) ?\(?['"]([@#][^'"\n]+)['"]/g)
    const strings = text.matchAll(/['"]([\w./@-]+)['"]/g)
    const templates = text.matchAll(/`([\w./@-]+)\/\$\{/g)
    return [
      ...new Set([
        ...[...imports].flatMap(([, specifier = '']) => importedBy(file, specifier)),
        ...[...strings].flatMap(([, string = '']) => this.#named(file, string)),
        ...[...templates].flatMap(([, folder = '']) => this.#inNamedFolder(file, folder)),
      ]),
    ]
  }

  /**
   * The files that a string means as a path. In the source of a package that is a file beside it: a program or a thread that it starts.
   * Tests, benches and scripts also read files and folders, which they name from their own folder or from the root.
   */
  #named(file: string, text: string): string[] {
    // The bundle of the command is not in the repository; the script that makes it names its sources.
    if (/\bdist\/(bin|man)\b/.test(text)) return ['scripts/build-cli.ts']
    if (!/\w/.test(text) || !/[./]/.test(text)) return []
    const beside = withSlashes(join(dirname(file), text))
    if (isShipped(file)) return this.#tracked.has(beside) ? [beside] : []
    const path = text.replace(/\/$/, '')
    const files = [beside, path].filter((name) => this.#tracked.has(name))
    return text.includes('/') ? [...files, ...this.#filesIn(path)] : files
  }

  /** A template that begins with a folder can mean any file in it. */
  #inNamedFolder(file: string, folder: string): string[] {
    if (isShipped(file)) return []
    return [withSlashes(join(dirname(file), folder)), folder].flatMap((path) => this.#filesIn(path))
  }

  #filesIn(folder: string): string[] {
    const start = `${folder}/`
    if (!this.#folders.has(start)) return []
    return [...this.#tracked].filter((file) => file.startsWith(start) && !file.endsWith('.test.ts'))
  }
}

function isShipped(file: string): boolean {
  return file.startsWith('packages/') && !file.endsWith('.test.ts')
}

function importedBy(file: string, specifier: string): string[] {
  try {
    return targetsOf(file, specifier).map((target) => target.file)
  } catch {
    return [] // Code inside a string: a real import of this kind does not compile.
  }
}

function foldersOf(files: readonly string[]): Set<string> {
  return new Set(files.flatMap((file) => [...file.matchAll(/\//g)].map((slash) => file.slice(0, slash.index + 1))))
}

/** What Git knows or would add: the work tree without build output. */
function trackedFiles(): string[] {
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return output.split('\n').filter(Boolean)
}
