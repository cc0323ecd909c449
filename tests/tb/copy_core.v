// Test core: copies `len` beats from `src` to `dst` in bursts of up to 16, read ids and write ids alternating.
// CSR: 0 magic, 4 src, 8 dst, c beats, 10 control (bit 0 start, bit 1 break every rule, bit 2 assertion, bit 3 ignore
// the write response), 14 status (bit 0 done, bit 1 error), 18 answers SLVERR, 1c never answers.
// verilator lint_off DECLFILENAME
module fold (input [`BITS-1:0] a, output [31:0] y);
  integer i;
  reg [31:0] sum;
  always @* begin
    sum = 0;
    for (i = 0; i < `BITS / 32; i = i + 1) sum = sum ^ a[32 * i +: 32];
  end
  assign y = sum;
endmodule

module total (clk, clear, add, a, sum);
  input clk;
  input clear;
  input add;
  input [31:0] a;
  output [31:0] sum;
  reg [31:0] kept;
  assign sum = kept;
  always @(posedge clk)
    if (clear) kept <= 0;
    else if (add) kept <= kept ^ a;
endmodule

module top (
    input clk, input rst, output irq,
    output [3:0] m_axi_awid, output [47:0] m_axi_awaddr, output [7:0] m_axi_awlen, output [2:0] m_axi_awsize,
    output [1:0] m_axi_awburst, output m_axi_awvalid, input m_axi_awready,
    output [`BITS-1:0] m_axi_wdata, output [`BITS/8-1:0] m_axi_wstrb, output m_axi_wlast, output m_axi_wvalid,
    input m_axi_wready, input [3:0] m_axi_bid, input [1:0] m_axi_bresp, input m_axi_bvalid, output m_axi_bready,
    output [3:0] m_axi_arid, output [47:0] m_axi_araddr, output [7:0] m_axi_arlen, output [2:0] m_axi_arsize,
    output [1:0] m_axi_arburst, output m_axi_arvalid, input m_axi_arready,
    input [3:0] m_axi_rid, input [`BITS-1:0] m_axi_rdata, input [1:0] m_axi_rresp, input m_axi_rlast,
    input m_axi_rvalid, output m_axi_rready,
    input [11:0] s_axil_awaddr, input s_axil_awvalid, output s_axil_awready, input [31:0] s_axil_wdata,
    input [3:0] s_axil_wstrb, input s_axil_wvalid, output s_axil_wready, output reg [1:0] s_axil_bresp,
    output reg s_axil_bvalid, input s_axil_bready, input [11:0] s_axil_araddr, input s_axil_arvalid,
    output s_axil_arready, output reg [31:0] s_axil_rdata, output reg [1:0] s_axil_rresp, output reg s_axil_rvalid,
    input s_axil_rready);
  localparam BYTES = `BITS / 8;
  localparam SIZE = $clog2(BYTES);

  // Two buffers of 16 beats, one for each id; both are read at once, then both are written.
  reg [31:0] src, dst, beats;
  wire [31:0] sum;
  reg [`BITS-1:0] buffer [0:31];
  reg running, done, error, violate, hasty, phase;
  reg [1:0] asked, sent, addressed, answered;  // a bit for each id
  reg [3:0] got0, got1;
  reg [1:0] full;
  reg turn;        // id whose write data go out
  reg [3:0] out;
  wire [31:0] xored;
  fold folder (.a(m_axi_rdata), .y(xored));
  total sums (.clk(clk), .clear(start || rst), .add(m_axi_rvalid && m_axi_rready), .a(xored), .sum(sum));

  assign irq = done;
  wire ask = asked[0];                         // id that asks next
  assign m_axi_arvalid = running && asked != 2'b11 && !(violate && phase);
  assign m_axi_arid = ask ? 4'd9 : 4'd2;
  assign m_axi_araddr = {16'd0, src} + (ask ? 16 * BYTES : 0) + (violate ? 4096 - BYTES : 0);
  assign m_axi_arlen = 15;
  assign m_axi_arsize = SIZE;
  assign m_axi_arburst = violate ? 2'd0 : 2'd1;
  assign m_axi_rready = running;
  wire rid = m_axi_rid == 4'd9;

  wire go = full == 2'b11;
  wire pick = addressed[0];
  assign m_axi_awvalid = go && addressed != 2'b11 && !(violate && phase);
  assign m_axi_awid = pick ? 4'd9 : 4'd2;
  assign m_axi_awaddr = {16'd0, dst} + (pick ? 16 * BYTES : 0);
  assign m_axi_awlen = 15;
  assign m_axi_awsize = SIZE;
  assign m_axi_awburst = 1;
  assign m_axi_wvalid = go && sent != 2'b11;
  assign m_axi_wdata = buffer[{turn, out}] ^ {{`BITS-1{1'b0}}, violate && phase};
  assign m_axi_wstrb = {BYTES{1'b1}};
  assign m_axi_wlast = violate ? out == 3 : out == 15;
  assign m_axi_bready = 1;

  reg have_aw, have_w, hung;
  reg [11:0] waddr;
  reg [31:0] wvalue;
  assign s_axil_awready = !have_aw;
  assign s_axil_wready = !have_w;
  assign s_axil_arready = !s_axil_rvalid && !hung;
  wire apply = have_aw && have_w && !s_axil_bvalid;
  wire start = apply && waddr == 12'h10 && wvalue[0];

  always @(posedge clk) begin
    if (s_axil_awvalid && s_axil_awready) begin have_aw <= 1; waddr <= s_axil_awaddr; end
    if (s_axil_wvalid && s_axil_wready) begin have_w <= 1; wvalue <= s_axil_wdata; end
    if (s_axil_bvalid && s_axil_bready) s_axil_bvalid <= 0;
    if (s_axil_rvalid && s_axil_rready) s_axil_rvalid <= 0;
    if (apply) begin
      have_aw <= 0; have_w <= 0; s_axil_bvalid <= 1; s_axil_bresp <= waddr == 12'h18 ? 2 : 0;
      case (waddr)
        12'h4: src <= wvalue;
        12'h8: dst <= wvalue;
        12'hc: beats <= wvalue;
        12'h10: begin
          violate <= wvalue[1];
          hasty <= wvalue[3];
          assert (!wvalue[2]);
        end
        default: ;
      endcase
    end
    if (s_axil_arvalid && s_axil_arready) begin
      hung <= s_axil_araddr == 12'h1c;
      s_axil_rvalid <= s_axil_araddr != 12'h1c;
      s_axil_rresp <= s_axil_araddr == 12'h18 ? 2 : 0;
      case (s_axil_araddr)
        12'h0: s_axil_rdata <= 32'h434f5059;
        12'h4: s_axil_rdata <= src;
        12'h8: s_axil_rdata <= dst;
        12'hc: s_axil_rdata <= beats;
        12'h14: s_axil_rdata <= {30'd0, error, done};
        12'h20: s_axil_rdata <= sum;
        default: s_axil_rdata <= 0;
      endcase
    end

    if (m_axi_arvalid && m_axi_arready) asked[ask] <= 1;
    if (m_axi_rvalid && m_axi_rready) begin
      buffer[{rid, rid ? got1 : got0}] <= m_axi_rdata;
      if (rid) got1 <= got1 + 1; else got0 <= got0 + 1;
      if (m_axi_rlast) full[rid] <= 1;
      if (m_axi_rresp != 0) error <= 1;
    end
    if (m_axi_awvalid && m_axi_awready) addressed[pick] <= 1;
    if (m_axi_wvalid && m_axi_wready) begin
      out <= out + 1;
      if (out == 15) begin sent[turn] <= 1; turn <= !turn; end
    end
    if (m_axi_bvalid) begin
      answered[m_axi_bid == 4'd9] <= 1;
      if (m_axi_bresp != 0) error <= 1;
    end
    if (running && (answered == 2'b11 || (hasty && sent == 2'b11 && addressed == 2'b11))) begin
      asked <= 0; sent <= 0; addressed <= 0; answered <= 0; full <= 0;
      src <= src + 32 * BYTES;
      dst <= dst + 32 * BYTES;
      beats <= beats - 32;
      if (beats == 32) begin running <= 0; done <= 1; end
    end
    if (start) begin running <= 1; done <= 0; error <= 0; end
    phase <= !phase;
    if (rst) begin
      phase <= 0;
      running <= 0; done <= 0; error <= 0; violate <= 0; hasty <= 0; hung <= 0;
      asked <= 0; sent <= 0; addressed <= 0; answered <= 0; full <= 0; turn <= 0; out <= 0; got0 <= 0; got1 <= 0;
      have_aw <= 0; have_w <= 0; s_axil_bvalid <= 0; s_axil_rvalid <= 0;
    end
  end
endmodule
