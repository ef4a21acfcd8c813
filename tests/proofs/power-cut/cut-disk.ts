import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * An ext4 on a loop device whose power can be cut.
 *
 * The device is a file on a second file system, in memory. Freezing that one holds every write to the device at the same moment,
 * in the middle of whatever the kernel is doing, and what was only in the page cache of the ext4 has not been written. So a copy
 * of the file made while it is frozen is what a disk without a cache of its own would have had. (A missing sync is seen by this; a
 * disk that lies about its cache is not modelled.)
 */
export class CutDisk {
  /** Where the ext4 is mounted. */
  readonly mount: string
  readonly #carrier: string
  readonly #image: string
  readonly #copy: string

  constructor(folder: string) {
    const memory = join(folder, 'memory')
    const carrierImage = join(memory, 'carrier.img')
    this.mount = join(folder, 'disk')
    this.#carrier = join(folder, 'carrier')
    this.#image = join(this.#carrier, 'disk.img')
    this.#copy = join(memory, 'copy.img')
    for (const each of [memory, this.mount, this.#carrier]) mkdirSync(each)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=700m', 'tapetree-power-cut', memory])
    makeExt4(carrierImage, 3 * diskMegabytes)
    execFileSync('mount', ['-o', 'loop', carrierImage, this.#carrier])
    makeExt4(this.#image, diskMegabytes)
  }

  /** `options` as for mount: how an ext4 keeps its journal decides what a cut leaves behind. */
  async start(options: string): Promise<void> {
    await run('mount', ['-o', `loop,${options}`, this.#image, this.mount])
  }

  async stop(): Promise<void> {
    await run('umount', [this.mount])
  }

  /** Cuts the power. What is on its way to the disk is lost; the disk is still mounted, but what happens there counts no more. */
  async cut(): Promise<void> {
    await run('fsfreeze', ['--freeze', this.#carrier])
    try {
      await run('cp', ['--sparse=always', this.#image, this.#copy])
    } finally {
      await run('fsfreeze', ['--unfreeze', this.#carrier])
    }
  }

  /** Throws away what happened since the cut: whoever worked on the disk must be gone. */
  async putBack(): Promise<void> {
    await this.stop()
    rmSync(this.#image)
    await run('cp', ['--sparse=always', this.#copy, this.#image])
    rmSync(this.#copy)
  }

  /** Unmounts in order. The mount namespace would do so, too. */
  async end(): Promise<void> {
    await this.stop().catch(() => undefined) // it may not be running
    await run('umount', [this.#carrier])
  }
}

const diskMegabytes = 96

function makeExt4(path: string, megabytes: number): void {
  writeFileSync(path, '')
  truncateSync(path, megabytes * 1024 * 1024)
  execFileSync('mkfs.ext4', ['-q', '-F', path])
}
