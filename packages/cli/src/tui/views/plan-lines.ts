import { shownWords } from '../markdown/shown-text.ts'
import type { StyledLine } from '../markdown/styled-line.ts'
import type { Theme } from '../theme.ts'

/** The list of what is to be done. It may come straight from a model, and then be anything. */
export function planLines(items: unknown, theme: Theme): StyledLine[] {
  if (!Array.isArray(items)) return []
  return items.slice(0, maxItems).flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null || !('text' in item) || typeof item.text !== 'string') return []
    const text = shownWords(item.text)
    const status = 'status' in item ? item.status : undefined
    if (status === 'completed')
      return [
        [
          { text: '✓ ', style: theme.success },
          { text, style: theme.muted },
        ],
      ]
    if (status === 'in_progress')
      return [
        [
          { text: '▸ ', style: theme.accent },
          { text, style: theme.strong },
        ],
      ]
    return [[{ text: '○ ', style: theme.muted }, { text }]]
  })
}

const maxItems = 100
