import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, statfsSync, writeSync, fstatSync } from 'node:fs'
import { join } from 'node:path'

const pageBytes = 4096

/** A tmpfs that can be filled up to the last page, or to the last inode, and emptied again. */
export class SmallDisk {
  readonly folder: string
  readonly #filler: number
  readonly #inodes: string

  constructor(folder: string) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,nr_inodes=600', 'tapetree-small-disk', folder])
    this.folder = folder
    this.#filler = openSync(join(folder, 'filler'), 'a')
    this.#inodes = join(folder, 'inodes')
  }

  /** Leaves room for so many pages. */
  fillTo(freePages: number): void {
    this.makeRoom()
    const excess = statfsSync(this.folder).bavail - freePages
    if (excess > 0) writeSync(this.#filler, new Uint8Array(excess * pageBytes))
    const left = statfsSync(this.folder).bavail
    if (excess > 0 && left !== freePages) throw new Error(`${left} pages are free, not ${freePages}`)
  }

  /** Fills up to the last page without making room first: for a disk that fills up while somebody works on it. */
  fill(): void {
    const free = statfsSync(this.folder).bavail
    if (free > 0) writeSync(this.#filler, new Uint8Array(free * pageBytes))
  }

  /** Leaves so many names for files and folders. */
  fillInodesTo(free: number): void {
    mkdirSync(this.#inodes)
    for (let left = statfsSync(this.folder).ffree; left > free; left--) {
      closeSync(openSync(join(this.#inodes, String(left)), 'wx'))
    }
  }

  makeRoom(): void {
    if (fstatSync(this.#filler).size > 0) ftruncateSync(this.#filler, 0)
    rmSync(this.#inodes, { recursive: true, force: true })
  }
}
