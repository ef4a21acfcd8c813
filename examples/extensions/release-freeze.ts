import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Extension } from '@tapetree/agent/extensions'

/** While the project is frozen, the model knows it, can ask why, and cannot push. `/freeze` and `/freeze off` change it. */
const releaseFreeze: Extension = (api) => {
  const fileIn = (cwd: string) => join(cwd, '.freeze')
  const reasonIn = (cwd: string) => readFile(fileIn(cwd), 'utf8').catch(() => '')
  api.on('beforeAgentStart', async ({ systemPrompt }, { cwd }) =>
    (await reasonIn(cwd)) === '' ? undefined : { systemPrompt: `${systemPrompt}\n\nThe project is frozen.` },
  )
  api.on('toolCall', async ({ call }, { cwd }) => {
    if (call.name !== 'bash' || !/\bgit push\b/.test(String(call.input['command']))) return undefined
    const reason = await reasonIn(cwd)
    return reason === '' ? undefined : { block: `The project is frozen: ${reason}. Do not push.` }
  })
  api.registerTool({
    name: 'freeze_reason',
    description: 'Tells why the project is frozen. Empty if it is not.',
    inputSchema: { type: 'object', properties: {} },
    readOnly: true,
    run: (_input, { cwd }) => reasonIn(cwd),
  })
  api.registerCommand({
    name: 'freeze',
    description: 'Freezes the project for a reason; `off` ends it.',
    run: async (reason, { cwd }) => {
      await writeFile(fileIn(cwd), reason === 'off' ? '' : reason)
      return { say: reason === 'off' ? 'The project is not frozen.' : 'The project is frozen.' }
    },
  })
}

export default releaseFreeze
