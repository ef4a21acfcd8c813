import { withFileLock } from '@tapetree/session/stores/file'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { RequestProblem } from '../util/problem-error.ts'
import { createVapidKeys, type VapidKeys } from './web-push.ts'

const subscriptionSchema = z.object({
  id: z.string(),
  tenant: z.string(),
  tokenId: z.string(),
  endpoint: z.string(),
  keys: z.object({ p256dh: z.string(), auth: z.string() }),
  /** Milliseconds since 1970. */
  createdAt: z.number(),
})
/** A browser that wants messages. It belongs to the token that subscribed it. */
export type PushSubscription = z.infer<typeof subscriptionSchema>

const contentSchema = z.object({
  vapid: z.object({ publicKey: z.string(), privateKey: z.string() }),
  subscriptions: z.array(subscriptionSchema),
})
type Content = z.infer<typeof contentSchema>

const maxPerToken = 20
const maxPerFile = 1000

/** The server's keys and all subscriptions, in one file that only its owner can read. Several servers may share it. */
export class PushStore {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  /** Created on first use. */
  async keys(): Promise<VapidKeys> {
    return (await this.#read())?.vapid ?? (await this.#change((content) => content)).vapid
  }

  async list(): Promise<PushSubscription[]> {
    return (await this.#read())?.subscriptions ?? []
  }

  /** The same endpoint of the same token is one subscription. */
  async add(wanted: Omit<PushSubscription, 'id'>): Promise<PushSubscription> {
    const { tenant, tokenId, endpoint } = wanted
    const hash = createHash('sha256').update(JSON.stringify([tenant, tokenId, endpoint]))
    const added = { ...wanted, id: hash.digest('hex').slice(0, 32) }
    await this.#change(({ vapid, subscriptions }) => {
      const others = subscriptions.filter(({ id }) => id !== added.id)
      const isFull = others.filter((each) => each.tokenId === tokenId && each.tenant === tenant).length >= maxPerToken
      if (isFull || others.length >= maxPerFile)
        throw new RequestProblem(409, 'too-many-subscriptions', 'There are too many subscriptions. Remove one first.')
      return { vapid, subscriptions: [...others, added] }
    })
    return added
  }

  /** Returns how many there were. */
  async remove(isUnwanted: (subscription: PushSubscription) => boolean): Promise<number> {
    const before = await this.list()
    const count = before.filter(isUnwanted).length
    if (count === 0) return 0
    await this.#change(({ vapid, subscriptions }) => ({
      vapid,
      subscriptions: subscriptions.filter((each) => !isUnwanted(each)),
    }))
    return count
  }

  async #change(change: (content: Content) => Content): Promise<Content> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
    return withFileLock(this.#file, async () => {
      const changed = change((await this.#read()) ?? { vapid: createVapidKeys(), subscriptions: [] })
      await replaceFile(this.#file, `${JSON.stringify(changed, undefined, 1)}\n`)
      return changed
    })
  }

  /** Undefined if there is no file. A malformed file rejects: new keys would end every subscription. */
  async #read(): Promise<Content | undefined> {
    const text = await readFile(this.#file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    return text === undefined ? undefined : contentSchema.parse(JSON.parse(text))
  }
}
