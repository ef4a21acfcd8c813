import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Extension } from '@tapetree/agent/extensions'

/** Tells the model with each request which branch is checked out. Nothing of it is kept in the session. */
const branchNote: Extension = (api) => {
  api.on('context', async ({ messages }, { cwd }) => {
    const head = await readFile(join(cwd, '.git', 'HEAD'), 'utf8').catch(() => '')
    const branch = /^ref: refs\/heads\/(.+)/.exec(head)?.[1]
    if (branch === undefined) return undefined
    const note = { type: 'text' as const, text: { content: `The branch of this moment is ${branch}.` } }
    return { messages: [...messages, { role: 'custom', content: [note] }] }
  })
}

export default branchNote
