// A fresh process: opens a session for its next turn and prints what that took.
import { openFileStore } from '@tapetree/session/stores/file'

const [folder = '', id = ''] = process.argv.slice(2)
globalThis.gc?.()
const before = process.memoryUsage()
const start = performance.now()
const store = openFileStore({ folder })
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
    rssBytes: after.rss - before.rss,
  }),
)
await session.close()
