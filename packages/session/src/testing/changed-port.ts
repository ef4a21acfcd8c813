import type { LogStore, ReadableLog, Scope, WritableLog } from '../log/log-store.ts'

export interface PortChange {
  /** Calls of the store that behave differently; the others go to the port itself. */
  store?: (port: LogStore) => Partial<LogStore>
  /** The same for every log that is opened or claimed. */
  log?: (log: WritableLog, session: { scope: Scope; sessionId: string }) => Partial<WritableLog>
}

/** A port with some of its calls replaced: for faults, latency, and stores that are broken on purpose. */
export function changedPort(port: LogStore, { store, log: change }: PortChange): LogStore {
  const logOf = <Log extends ReadableLog>(log: Log, scope: Scope, sessionId: string): Log =>
    change ? replaced(log, change(log as unknown as WritableLog, { scope, sessionId }) as Partial<Log>) : log
  const withLogs = replaced<LogStore>(port, {
    open: async (scope, sessionId, place) => logOf(await port.open(scope, sessionId, place), scope, sessionId),
    claim: async (scope, sessionId, options) => {
      const claim = await port.claim(scope, sessionId, options)
      return claim.type === 'claimed' ? { ...claim, log: logOf(claim.log, scope, sessionId) } : claim
    },
  })
  return store ? replaced(withLogs, store(withLogs)) : withLogs
}

/** Members of `other` come first. Methods stay bound to their own object, whose private members they use. */
function replaced<T extends object>(target: T, other: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key) => {
      const from = key in other ? other : target
      const value: unknown = Reflect.get(from, key, from)
      return typeof value === 'function' ? value.bind(from) : value
    },
  })
}
