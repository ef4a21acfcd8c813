// A fresh process: opens a session in a database for its next turn and prints what that took.
import { openPostgresStore } from '@tapetree/session/stores/postgres'

const [url = '', id = ''] = process.argv.slice(2)
globalThis.gc?.()
const before = process.memoryUsage()
const start = performance.now()
const store = openPostgresStore({ url })
const session = await store.open(id)
const { messages } = await session.getContext()
const ms = performance.now() - start
globalThis.gc?.()
const after = process.memoryUsage()
console.log(
  JSON.stringify({
    ms,
    messages: messages.length,
    heldBytes: after.heapUsed + after.external - before.heapUsed - before.external,
  }),
)
await session.close()
await store.close()
