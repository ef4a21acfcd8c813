import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Taken in turn. The first is what everybody has. */
export const mountOptions = [
  'data=ordered',
  'data=writeback',
  'data=ordered,nodelalloc',
  'data=ordered,commit=1',
  'data=journal',
]

export interface CutDiskOptions {
  /** How many disks lose their power at the same moment. Default: 1. */
  count?: number
  /** The size of each. */
  megabytes?: number
}

/**
 * File systems, each an ext4 on a loop device, whose power can be cut.
 *
 * The devices are files on another file system, in memory. Freezing that one holds every write to the devices at the same moment,
 * in the middle of whatever the kernel is doing, and what was only in the page cache of an ext4 has not been written. So a copy
 * of the files made while it is frozen is what disks without a cache of their own would have had. (A missing sync is seen by this; a
 * disk that lies about its cache is not modelled.)
 */
export class CutDisks {
  /** Where each ext4 is mounted. */
  readonly mounts: readonly string[]
  readonly #carrier: string
  readonly #images: readonly { image: string; copy: string; mount: string }[]

  constructor(folder: string, { count = 1, megabytes = 96 }: CutDiskOptions = {}) {
    const memory = join(folder, 'memory')
    const carrierImage = join(memory, 'carrier.img')
    this.#carrier = join(folder, 'carrier')
    this.#images = Array.from({ length: count }, (_, index) => ({
      image: join(this.#carrier, `disk-${index}.img`),
      copy: join(memory, `copy-${index}.img`),
      mount: join(folder, `disk-${index}`),
    }))
    this.mounts = this.#images.map(({ mount }) => mount)
    for (const each of [memory, this.#carrier, ...this.mounts]) mkdirSync(each)
    const carrierMegabytes = (count + 2) * megabytes
    const size = `size=${carrierMegabytes + count * megabytes + 300}m`
    execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'tapetree-power-cut', memory])
    makeExt4(carrierImage, carrierMegabytes)
    execFileSync('mount', ['-o', 'loop', carrierImage, this.#carrier])
    for (const { image } of this.#images) makeExt4(image, megabytes)
  }

  /** `options` as for mount: how an ext4 keeps its journal decides what a cut leaves behind. */
  async start(options: string): Promise<void> {
    for (const { image, mount } of this.#images) await run('mount', ['-o', `loop,${options}`, image, mount])
  }

  async stop(): Promise<void> {
    for (const { mount } of this.#images) await run('umount', [mount])
  }

  /** Cuts the power. What is on its way to the disks is lost; they are still mounted, but what happens there counts no more. */
  async cut(): Promise<void> {
    await run('fsfreeze', ['--freeze', this.#carrier])
    try {
      for (const { image, copy } of this.#images) await run('cp', ['--sparse=always', image, copy])
    } finally {
      await run('fsfreeze', ['--unfreeze', this.#carrier])
    }
  }

  /** Throws away what happened since the cut: whoever worked on the disks must be gone. */
  async putBack(): Promise<void> {
    await this.stop()
    for (const { image, copy } of this.#images) {
      rmSync(image)
      await run('cp', ['--sparse=always', copy, image])
      rmSync(copy)
    }
  }

  /** Unmounts in order. The mount namespace would do so, too. */
  async end(): Promise<void> {
    await this.stop().catch(() => undefined) // they may not be running
    await run('umount', [this.#carrier])
  }
}

function makeExt4(path: string, megabytes: number): void {
  writeFileSync(path, '')
  truncateSync(path, megabytes * 1024 * 1024)
  execFileSync('mkfs.ext4', ['-q', '-F', path])
}
