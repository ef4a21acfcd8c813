import type { Extension } from '@tapetree/agent/extensions'

/** What a summary of a long session must not lose; and a word at the start of each run on how to say it. */
const keepDecisions: Extension = (api) => {
  api.on('beforeCompact', ({ instructions = '' }) => ({
    instructions:
      `${instructions}\nKeep every decision with its reason, and every name of a file that was changed.`.trim(),
  }))
  api.on('beforeAgentStart', ({ systemPrompt }) => ({
    systemPrompt: `${systemPrompt}\n\nWhen you decide something, begin the sentence with "Decision:" and give the reason.`,
  }))
}

export default keepDecisions
