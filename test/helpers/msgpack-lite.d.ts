/** The part of msgpack-lite that tests use as a second opinion; the package ships no types. */
declare module 'msgpack-lite' {
  interface Codec {
    readonly brand: unique symbol
  }
  export function createCodec(options: { useraw?: boolean }): Codec
  export function encode(value: unknown, options: { codec: Codec }): Uint8Array
}
