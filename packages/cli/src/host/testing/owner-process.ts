// A process that owns a session: `owner-process.ts <folder> <session> [silent]`. Prints `ready` once it owns it, then waits to be killed.
import { placesOf } from '../places.ts'
import { openStore } from '../open-store.ts'
import { SessionHost } from '../session-host.ts'

const [cwd = '', session = '', silent] = process.argv.slice(2)
const io = { env: process.env, home: process.env['HOME'] ?? '' }
const store = await openStore(placesOf(io))
const host = await SessionHost.open({ io, store, owner: 'terminal' })
const sessionId = session === 'new' ? await host.create({ cwd }) : session
const { access } = await host.open(sessionId)
if (silent === undefined) await host.listen()
process.stdout.write(`${JSON.stringify({ sessionId, access: access.type })}\n`)
process.once('SIGTERM', () => void host.close().then(() => process.exit(0)))
setInterval(() => undefined, 60_000)
