import { join } from 'node:path'
import { z } from 'zod'
import type { Pin, PinStore } from '../mcp/pinned-tools.ts'
import { ServerProblem } from '../mcp/server-problem.ts'
import { readBounded, changePrivateFile, writePrivateFile } from './config-files.ts'

const pinsSchema = z.record(
  z.string(),
  z.object({ origin: z.string(), tools: z.record(z.string(), z.string()).exactOptional() }),
)

const maxBytes = 4 * 1024 * 1024

/** The pins of MCP servers, in a file of the user. */
export class PinFile implements PinStore {
  readonly #path: string

  constructor(configFolder: string) {
    this.#path = join(configFolder, 'mcp-pins.json')
  }

  async get(server: string): Promise<Pin | undefined> {
    return (await this.#read()).get(server)
  }

  async set(server: string, pin: Pin): Promise<void> {
    await changePrivateFile(this.#path, async () => {
      const pins = await this.#read()
      pins.set(server, pin)
      await writePrivateFile(this.#path, `${JSON.stringify(Object.fromEntries(pins), undefined, 1)}\n`)
    })
  }

  /** Throws if there is a file that cannot be read: without pins, a changed server would count as a new one. */
  async #read(): Promise<Map<string, Pin>> {
    const result = await readBounded(this.#path, maxBytes)
    if (result.type === 'missing') return new Map()
    if (result.type === 'refused') throw this.#unreadable(result.reason)
    try {
      return new Map(Object.entries(pinsSchema.parse(JSON.parse(Buffer.from(result.bytes).toString()))))
    } catch {
      throw this.#unreadable('It is malformed.')
    }
  }

  #unreadable(reason: string): ServerProblem {
    return new ServerProblem(
      `The pins of MCP servers in ${this.#path} cannot be read, so no server is started. ${reason} Repair or remove the file, then restart the server.`,
      { isFinal: true },
    )
  }
}
