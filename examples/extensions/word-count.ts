import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Extension } from '@tapetree/agent/extensions'

/** A tool of one's own. It says what it touches, so reading a file of the project needs no question. */
const wordCount: Extension = (api) => {
  api.registerTool({
    name: 'word_count',
    description: 'Counts the words, lines and characters of a text file.',
    inputSchema: {
      type: 'object',
      properties: { path: { type: 'string', description: 'The file, absolute or from the working folder.' } },
      required: ['path'],
    },
    readOnly: true,
    replay: 'safe',
    access: [{ type: 'read', input: 'path' }],
    async run(input, { cwd }) {
      const text = await readFile(resolve(cwd, String(input['path'])), 'utf8')
      const words = text.split(/\s+/).filter(Boolean).length
      return `${words} words, ${text.split('\n').length - 1} lines, ${text.length} characters`
    },
  })
}

export default wordCount
