import { z } from 'zod'

/** Data around sessions: folders and files to choose from, settings, agents, commands. */

const path = z.string().min(1).max(4096)
const limit = z.coerce.number().int().min(1).max(200)

export const readinessSchema = z.object({ status: z.enum(['ready', 'not-ready']), reason: z.string().optional() })

export const fileQuerySchema = z.object({
  /** The text typed so far, relative to the session's folder. */
  q: z.string().max(4096).optional(),
  limit: limit.optional(),
})
export const fileListSchema = z.object({
  files: z.array(z.object({ path: z.string(), type: z.enum(['file', 'folder']) })),
  has_more: z.boolean(),
})

export const folderQuerySchema = z.object({ path: path.optional() })
/** Without a path these are the roots; nothing outside of them can be chosen. */
export const folderListSchema = z.object({
  path: z.string().nullable(),
  parent: z.string().nullable(),
  folders: z.array(z.object({ name: z.string(), path: z.string() })),
  has_more: z.boolean(),
})

export const settingsQuerySchema = z.object({ cwd: path.optional() })
export const settingListSchema = z.object({
  settings: z.array(
    z.object({
      key: z.string(),
      value: z.unknown(),
      origin: z.object({
        layer: z.string(),
        file: z.string().optional(),
        line: z.int().optional(),
        variable: z.string().optional(),
      }),
    }),
  ),
  problems: z.array(z.string()),
})

export const agentListSchema = z.object({
  agents: z.array(z.object({ id: z.string(), name: z.string(), description: z.string().optional() })),
})

export const slashCommandListSchema = z.object({
  commands: z.array(z.object({ name: z.string(), description: z.string() })),
})
