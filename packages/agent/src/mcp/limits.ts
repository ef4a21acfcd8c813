/** Limits for servers. A tool beyond a limit is left out and reported; a message beyond one ends the connection. */
export interface McpLimits {
  /** Until the handshake is complete, without the time to sign in. */
  connectMs: number
  /** Until it has listed its tools. */
  listMs: number
  /** How long the user may take to sign in. */
  signInMs: number
  callMs: number
  maxMessageBytes: number
  maxTools: number
  /** Longer descriptions are truncated. */
  maxDescriptionLength: number
  maxSchemaBytes: number
  maxSchemaDepth: number
  maxImages: number
  maxImageBytes: number
  /** How many failed starts in a row before a server is given up. */
  maxRestarts: number
}

export const defaultMcpLimits: McpLimits = {
  connectMs: 30_000,
  listMs: 30_000,
  signInMs: 5 * 60_000,
  callMs: 5 * 60_000,
  maxMessageBytes: 16 * 1024 * 1024,
  maxTools: 128,
  maxDescriptionLength: 4096,
  maxSchemaBytes: 64 * 1024,
  maxSchemaDepth: 32,
  maxImages: 8,
  maxImageBytes: 5 * 1024 * 1024,
  maxRestarts: 3,
}
