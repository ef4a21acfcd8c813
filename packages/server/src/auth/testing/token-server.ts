// A server process with a shared token file: prints its address, and serves until it is killed.
import { startServer } from '../../server.ts'
import { scriptedSessions } from '../../testing/scripted-sessions.ts'
import { TokenStore } from '../token-store.ts'

const [file = ''] = process.argv.slice(2)
const sessions = scriptedSessions()
const session = await sessions.create({ cwd: '/' })
const server = await startServer({
  tenants: new Map([['default', sessions]]),
  tokens: await TokenStore.open({ file }),
})
process.stdout.write(`${JSON.stringify({ url: server.url, session })}\n`)
