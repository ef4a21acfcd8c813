import { EventEmitter } from 'node:events'
import type { Publisher, Subscriber } from 'resumable-stream/generic'

const channels = new EventEmitter()
const values = new Map<string, string>()
const set = async (key: string, value: string) => {
  values.set(key, value)
  return 'OK' as const
}

/** What `resumable-stream` needs of Redis, for one process. Its lines do not count: in earnest it is a Redis client. */
export const publisher: Publisher = {
  connect: async () => undefined,
  publish: async (channel, message) => (channels.emit(channel, message) ? 1 : 0),
  set,
  get: async (key) => values.get(key) ?? null,
  incr: async (key) => Number(values.set(key, String(Number(values.get(key) ?? 0) + 1)).get(key)),
}

export const subscriber: Subscriber = {
  connect: async () => undefined,
  subscribe: async (channel, callback) => void channels.on(channel, callback),
  unsubscribe: async (channel) => channels.removeAllListeners(channel),
}
