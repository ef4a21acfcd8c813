import type { Extension } from '@tapetree/agent/extensions'

const mark = 'needs_review'

/** Marks each change of a migration for review, tells the agent once to stop there, and lists the marks: `/reviewed` clears them. */
const reviewMarks: Extension = (api) => {
  api.on('toolResult', async ({ call, output }) => {
    const { path } = call.input
    if (output.isError || !['edit', 'write'].includes(call.name) || !String(path).includes('migrations/')) return
    const entryId = await api.leafId()
    if (entryId === null) return
    const isFirst = (await marked()).length === 0
    await api.setLabel(entryId, mark)
    await api.setSessionName(`Review: ${String(path)}`)
    if (isFirst) await api.steer('A migration was changed. Make no other change before a person has reviewed it.')
  })
  api.registerCommand({
    name: 'reviewed',
    description: 'Clears the marks of the changes that needed a review.',
    async run() {
      const entries = await marked()
      for (const { entryId } of entries) await api.setLabel(entryId, '')
      return { say: `Reviewed: ${entries.length}.` }
    },
  })

  async function marked() {
    return (await api.labels()).filter(({ label }) => label === mark)
  }
}

export default reviewMarks
