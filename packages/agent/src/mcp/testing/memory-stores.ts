import type { Pin, PinStore } from '../pinned-tools.ts'
import type { OAuthRecord, OAuthStore } from '../sign-in.ts'

export function memoryPins(): PinStore & { pins: Map<string, Pin> } {
  const pins = new Map<string, Pin>()
  return { pins, get: async (server) => pins.get(server), set: async (server, pin) => void pins.set(server, pin) }
}

export function memoryTokens(): OAuthStore & { records: Map<string, OAuthRecord> } {
  const records = new Map<string, OAuthRecord>()
  return {
    records,
    load: async (server) => records.get(server),
    save: async (server, record) => void records.set(server, record),
  }
}
