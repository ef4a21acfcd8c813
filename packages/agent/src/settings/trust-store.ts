import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { readBounded, writePrivateFile } from './config-files.ts'
import { sha256Of } from '../util/request-hash.ts'

const hashes = z.record(z.string(), z.string())

const grantSchema = z.object({
  version: z.literal(1),
  root: z.string(),
  /** Milliseconds since 1970. */
  grantedAt: z.number(),
  /** Hashes of the content: files by path, programs by path, commands by name. */
  files: hashes,
  programs: hashes,
  /** Modules that extensions import; absent in grants of earlier versions, which covered no imports. */
  modules: hashes.default({}),
  commands: hashes,
})

/** A grant of the user. */
export type Grant = z.output<typeof grantSchema>

const maxGrantBytes = 4 * 1024 * 1024

/** The grants of the user, one file for each project: two processes never overwrite each other's. */
export class TrustStore {
  readonly #folder: string

  /** In the folder of the user (see `configFolder`). */
  constructor(configFolder: string) {
    this.#folder = join(configFolder, 'trust')
  }

  /** Also undefined if other users could have written it, or it cannot be read: then the user is asked again. */
  async read(root: string): Promise<Grant | undefined> {
    const result = await readBounded(this.#fileFor(root), maxGrantBytes)
    if (result.type !== 'read') return undefined
    const isOwn = (result.mode & 0o022) === 0 && result.uid === (process.getuid?.() ?? result.uid)
    if (!isOwn) return undefined
    try {
      const grant = grantSchema.parse(JSON.parse(Buffer.from(result.bytes).toString()))
      return grant.root === root ? grant : undefined
    } catch {
      return undefined // damaged: treated as missing
    }
  }

  async write(grant: Grant): Promise<void> {
    await writePrivateFile(this.#fileFor(grant.root), `${JSON.stringify(grant, undefined, 1)}\n`)
  }

  async remove(root: string): Promise<void> {
    await rm(this.#fileFor(root), { force: true })
  }

  #fileFor(root: string): string {
    return join(this.#folder, `${sha256Of(root)}.json`)
  }
}
