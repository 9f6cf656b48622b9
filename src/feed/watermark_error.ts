import { HoldfastError } from "../errors.ts";

/** A watermark that is none, or that lies in the future; whoever gave it still has the old one. */
export class WatermarkError extends HoldfastError {
  /** Always `"watermark"`. */
  override readonly code = "watermark";
}
