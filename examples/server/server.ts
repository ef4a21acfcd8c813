// Sessions on disk behind HTTPS and WebSocket. The model is scripted: put one of `@tapetree/agent` in its place.
import { onlyModel } from '@tapetree/agent'
import { scriptedModel } from '@tapetree/agent/testing'
import { agentSessions, startServer, TokenStore } from '@tapetree/server'
import { openFileStore } from '@tapetree/session/stores/file'

const { FOLDER: folder = '.tapetree', HOST: host = '127.0.0.1', PORT: port = '8787' } = process.env
const store = openFileStore({ folder: `${folder}/sessions` })
const model = scriptedModel([], { otherwise: () => [{ type: 'text_delta', text: 'I hear you.' }] })
const server = await startServer({
  tenants: new Map([['default', agentSessions({ store, models: onlyModel(model) })]]),
  tokens: await TokenStore.open({ file: `${folder}/tokens.json` }),
  tls: { selfSigned: { folder } },
  api: { roots: () => [folder] },
  recovery: 'resume',
  port: Number(port),
  host,
})
process.stdout.write(`${server.pairingLink({ tenant: 'default', role: 'drive' })}\n`)
process.once('SIGTERM', () => void server.close().then(() => store.close()))
