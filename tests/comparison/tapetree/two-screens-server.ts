import { anthropic } from '@tapetree/agent/models/anthropic'
import { RestClient } from '@tapetree/client'
import { agentSessions, startServer, TokenStore } from '@tapetree/server'
import { openFileStore } from '@tapetree/session/stores/file'

const folder = process.env['FOLDER'] ?? '.'
const store = openFileStore({ folder: `${folder}/sessions` })
const tokens = await TokenStore.open({ file: `${folder}/tokens.json` })
const model = anthropic({ model: 'claude-sonnet-5' })
const server = await startServer({
  tenants: new Map([['default', agentSessions({ store, model })]]),
  tokens,
  api: { roots: () => [folder] },
})
const address = { baseUrl: server.url, token: tokens.takeFirstToken() ?? '' }
const { id: sessionId } = await new RestClient(address).createSession({ cwd: folder })
console.log(JSON.stringify({ ...address, sessionId }))
