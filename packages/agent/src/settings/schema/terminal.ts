import { z } from 'zod'

/** How the chat in the terminal looks and is used. */
export const terminal = z.strictObject({
  theme: z
    .enum(['dark', 'light', 'high-contrast'])
    .describe('The colours of the chat in the terminal.')
    .exactOptional(),
  vim: z.boolean().describe('Whether what is typed is edited with the keys of vi.').exactOptional(),
  screenReader: z.boolean().describe('Whether lines are only added and nothing is drawn again.').exactOptional(),
  altScreen: z
    .boolean()
    .describe('Whether the chat has a screen of its own. False: it stays in the scrollback of the terminal.')
    .exactOptional(),
})
