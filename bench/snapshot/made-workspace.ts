import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const filesInFolder = 50

/** A repository with one commit, whose files are all checked out. */
export class MadeWorkspace {
  readonly folder: string
  readonly files: number
  #changes = 0

  constructor(folder: string, files: number) {
    this.folder = folder
    this.files = files
    mkdirSync(folder)
    this.#git(['init', '--quiet', '--template='])
    this.#git(['fast-import', '--quiet'], this.#commit())
    this.#git(['reset', '--quiet', '--hard', 'main'])
  }

  /** What the bench compares with: the user's own question. It may refresh the index, as it does for the user. */
  status(): void {
    this.#git(['status', '--porcelain'])
  }

  /** Rewrites files that are spread over the whole workspace, always the same ones. */
  change(count: number): void {
    this.#changes += 1
    for (let index = 0; index < count; index += 1) {
      const number = Math.floor((index * this.files) / count)
      writeFileSync(join(this.folder, pathOf(number)), contentOf(number, this.#changes))
    }
  }

  #commit(): string {
    const entries = Array.from({ length: this.files }, (_, number) => {
      const content = contentOf(number, 0)
      return `M 100644 inline ${pathOf(number)}\ndata ${content.length}\n${content}\n`
    })
    const about = 'commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 5\nfirst\n'
    return `${about}${entries.join('')}done\n`
  }

  #git(command: readonly string[], input?: string): void {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
    const defaults = ['-c', 'init.defaultBranch=main', '-C', this.folder]
    execFileSync('git', [...defaults, ...command], {
      env,
      stdio: ['pipe', 'ignore', 'inherit'],
      ...(input !== undefined && { input }),
    })
  }
}

function pathOf(number: number): string {
  const folder = Math.floor(number / filesInFolder)
  return `package${Math.floor(folder / 20)}/part${folder % 20}/file${number % filesInFolder}.ts`
}

/** About a kilobyte that differs from file to file, and in a few lines from version to version. */
function contentOf(number: number, version: number): string {
  const lines = Array.from({ length: 25 }, (_, line) => `export const value${line} = ${number * 7919 + line * 104_729}`)
  lines[version % 25] = `export const version = ${version}`
  return `${lines.join('\n')}\n`
}
