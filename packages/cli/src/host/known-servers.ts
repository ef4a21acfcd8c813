import { parseJson } from '@tapetree/session/util/json'
import { withFileLock } from '@tapetree/session/stores/file'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import type { Places } from './places.ts'

const serverSchema = z.object({
  /** The origin, and the path if the server is below one. */
  url: z.string(),
  token: z.string(),
  pairedAt: z.string(),
  /** For a self-signed server: the certificate that it must present. */
  pinned: z.object({ certificate: z.string(), fingerprint: z.string() }).optional(),
})
const fileSchema = z.object({ version: z.literal(1), servers: z.array(serverSchema) })

export type KnownServer = z.infer<typeof serverSchema>

/** Servers paired with this device, in a file that only its owner can read. */
export class KnownServers {
  readonly #file: string

  constructor({ state }: Pick<Places, 'state'>) {
    this.#file = join(state, 'servers.json')
  }

  async list(): Promise<KnownServer[]> {
    const text = await readFile(this.#file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (text === undefined) return []
    await chmod(this.#file, 0o600)
    const parsed = fileSchema.safeParse(parseJson(text))
    if (parsed.success) return parsed.data.servers
    throw new Failure(exitCodes.configuration, `${this.#file} is not a list of servers.`, {
      type: 'unreadable-file',
      why: 'Delete it and pair with your servers again.',
    })
  }

  async find(url: string): Promise<KnownServer | undefined> {
    return (await this.list()).find((server) => server.url === url)
  }

  async remember(server: KnownServer): Promise<void> {
    await this.#change((servers) => [...servers.filter(({ url }) => url !== server.url), server])
  }

  /** False if the server was not known. */
  async forget(url: string): Promise<boolean> {
    let isKnown = false
    await this.#change((servers) => {
      isKnown = servers.some((server) => server.url === url)
      return isKnown ? servers.filter((server) => server.url !== url) : undefined
    })
    return isKnown
  }

  /** Holds a lock, because other processes also pair and forget. Writes nothing if `change` returns undefined. */
  async #change(change: (servers: KnownServer[]) => KnownServer[] | undefined): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
    await withFileLock(this.#file, async () => {
      const servers = change(await this.list())
      if (servers) await replaceFile(this.#file, `${JSON.stringify({ version: 1, servers }, null, 2)}\n`)
    })
  }
}
