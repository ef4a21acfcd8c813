import type { Extension } from '@tapetree/agent/extensions'

const maxLines = 200

/** Keeps the beginning and the end of long results, which is where most of them say what matters. */
const shortenResults: Extension = (api) => {
  api.on('toolResult', ({ output }) => {
    if (typeof output.content !== 'string') return undefined
    const lines = output.content.split('\n')
    if (lines.length <= maxLines) return undefined
    const left = lines.length - maxLines
    const half = maxLines / 2
    return { content: [...lines.slice(0, half), `[${left} lines left out]`, ...lines.slice(-half)].join('\n') }
  })
}

export default shortenResults
