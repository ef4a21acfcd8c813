import type { Extension } from '@tapetree/agent/extensions'

/** `/todo buy salt` notes something in the session, where the model does not see it; `/todo` alone asks the agent to do it all. */
const todoCommand: Extension = (api) => {
  const notes: string[] = []
  api.registerCommand({
    name: 'todo',
    description: 'Notes something to be done; without words, asks the agent to do what was noted.',
    async run(args) {
      if (args === '') {
        if (notes.length === 0) return { say: 'Nothing was noted.' }
        return { prompt: `Do these things, one after another:\n${notes.map((note) => `- ${note}`).join('\n')}` }
      }
      notes.push(args)
      await api.appendEntry('todo', { note: args })
      return { say: `Noted. That makes ${notes.length}.` }
    },
  })
}

export default todoCommand
