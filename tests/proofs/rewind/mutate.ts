import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  appendFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { filesBelow, isLeftOut } from './workspaces.ts'

export type Random = () => number

/** Numbers that depend on the seed alone. */
export function randomOf(seed: number): Random {
  let state = seed % 2 ** 32
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Makes random changes in a workspace, as an editor, a shell command or a build would. */
export class Mutator {
  readonly #folder: string
  readonly #random: Random
  readonly #names: readonly string[]
  #count = 0

  constructor(folder: string, { random, actions }: { random: Random; actions?: readonly string[] | undefined }) {
    this.#folder = folder
    this.#random = random
    this.#names = actions ?? Object.keys(this.#actions())
  }

  /** Returns what it did. */
  change(): string {
    const actions = this.#actions()
    const name = this.#pick(this.#names)
    try {
      return `${name} ${actions[name]?.()}`
    } catch (error) {
      // A folder where a file should be, and the like: then nothing changes.
      return `${name} failed: ${(error as Error).message}`
    }
  }

  #actions(): Record<string, () => string> {
    return {
      write: () => this.#write(this.#newPath(), this.#content()),
      overwrite: () => this.#write(this.#file(), this.#content()),
      append: () => {
        const path = this.#file()
        appendFileSync(join(this.#folder, path), this.#content())
        return path
      },
      remove: () => {
        const path = this.#file()
        rmSync(join(this.#folder, path))
        return path
      },
      rename: () => this.#rename(this.#file(), this.#newPath()),
      replaceByRename: () => {
        const path = this.#file()
        const temporary = join(this.#folder, `${path}.tmp~`)
        writeFileSync(temporary, this.#content())
        renameSync(temporary, join(this.#folder, path))
        return path
      },
      renameFolder: () => this.#rename(this.#folderPath(), this.#newPath()),
      removeFolder: () => {
        const path = this.#folderPath()
        rmSync(join(this.#folder, path), { recursive: true })
        return path
      },
      link: () => {
        const path = this.#newPath()
        this.#makeFolder(path)
        symlinkSync(this.#pick(['../x', 'src', '/nowhere', this.#newPath()]), join(this.#folder, path))
        return path
      },
      mode: () => {
        const path = this.#file()
        const place = join(this.#folder, path)
        if (lstatSync(place).isSymbolicLink()) return path
        chmodSync(place, lstatSync(place).mode ^ 0o111)
        return path
      },
      fileToFolder: () => {
        const path = this.#file()
        rmSync(join(this.#folder, path))
        return this.#write(`${path}/inside`, this.#content())
      },
      folderToFile: () => {
        const path = this.#folderPath()
        rmSync(join(this.#folder, path), { recursive: true })
        return this.#write(path, this.#content())
      },
      nestedRepository: () => {
        const path = `nested${this.#small(3)}`
        mkdirSync(join(this.#folder, path), { recursive: true })
        const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
        execFileSync('git', ['-C', join(this.#folder, path), 'init', '--quiet', '--template='], { env })
        return this.#write(`${path}/file${this.#small(3)}`, this.#content())
      },
      shell: () => {
        const command = this.#pick([
          'for f in src/*; do [ -f "$f" ] && [ ! -L "$f" ] && sed -i s/a/b/ "$f"; done; true',
          'mkdir -p gen && for i in 1 2 3 4 5; do echo $$ $i > gen/f$i.txt; done',
          'rm -rf gen',
          'cp -a src copy 2>/dev/null; true',
          'tar cf - src 2>/dev/null | (mkdir -p unpacked && tar xf - -C unpacked) ; true',
          'find . -name .git -prune -o -type f -name "*.txt" -exec touch {} +',
        ])
        execFileSync('sh', ['-c', command], { cwd: this.#folder, stdio: 'ignore' })
        return command
      },
      removeIgnoreFile: () => {
        rmSync(join(this.#folder, '.gitignore'))
        return '.gitignore'
      },
      leftOut: () => {
        const path = this.#pick(['out/x', 'out/deep/y', 'a.log', '.env', 'sub/.env', 'large-file'])
        const content = path === 'large-file' ? Buffer.alloc(5 * 1024 * 1024 + 1, this.#small(255)) : this.#content()
        return this.#write(path, content)
      },
    }
  }

  #write(path: string, content: string | Buffer): string {
    this.#makeFolder(path)
    writeFileSync(join(this.#folder, path), content)
    return path
  }

  #rename(from: string, to: string): string {
    this.#makeFolder(to)
    renameSync(join(this.#folder, from), join(this.#folder, to))
    return `${from} > ${to}`
  }

  #makeFolder(path: string): void {
    mkdirSync(dirname(join(this.#folder, path)), { recursive: true })
  }

  #content(): string | Buffer {
    const number = this.#small(1000)
    return this.#pick<string | Buffer>([
      `line ${number}\n`.repeat(1 + this.#small(20)),
      `windows ${number}\r\nline\r\n`,
      Buffer.from([0, number % 256, 255, 254, 13, 10]),
      Buffer.from(`\ufeffwide ${number}\n`, 'utf16le'),
      `version https://git-lfs.example/spec/v1\noid sha256:${number}\nsize ${number}\n`,
      `$Id$ ${number}\n`,
      '',
    ])
  }

  #newPath(): string {
    const folder = this.#pick(['', 'src/', 'sub/', 'sub/deep/', `new${this.#small(3)}/`, 'with space/'])
    const name = this.#pick(['a.ts', 'b.txt', 'c', 'ünï.md', '-dash', 'quo"te', 'new\nline', 'é', `n${++this.#count}`])
    return folder + name
  }

  #file(): string {
    const files = filesBelow(this.#folder).flatMap(({ path }) => (isLeftOut(path) ? [] : [path]))
    if (files.length === 0) throw new Error('there is no file')
    return this.#pick(files)
  }

  #folderPath(): string {
    const folders = readdirSync(this.#folder, { withFileTypes: true }).filter(
      (each) => each.isDirectory() && each.name !== '.git' && each.name !== 'out',
    )
    if (folders.length === 0) throw new Error('there is no folder')
    return this.#pick(folders).name
  }

  #small(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#small(values.length)] as T
  }
}
